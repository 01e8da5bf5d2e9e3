"use strict";
// Moments in the reader's own time zone; without this script they stay in UTC.
const zone = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
function localTimes(root) {
  for (const one of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(one.getAttribute("datetime"));
    if (!Number.isNaN(moment.getTime())) {
      one.title = one.textContent;
      one.textContent = zone.format(moment);
      one.removeAttribute("datetime");
    }
  }
}
localTimes(document);
document.addEventListener("htmx:afterSwap", (event) => {
  localTimes(event.target);
  const first = event.target.querySelector("#pay") || event.target.querySelector("h2");
  if (first) {
    if (first.tagName === "H2") first.tabIndex = -1;
    first.focus();
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.id === "sql") {
    event.preventDefault();
    document.getElementById("check").click();
  }
});
