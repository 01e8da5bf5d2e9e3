// Counts through node-pg: simple, parameters, a named statement, an error. Prints one JSON line.
const { Client } = require("pg");

async function main() {
  const [port, password, certificate] = process.argv.slice(2);
  const client = new Client({
    host: "localhost",
    port: Number(port),
    user: "carol",
    password,
    database: "sqlrs",
    ssl: { ca: require("fs").readFileSync(certificate, "utf8") },
  });
  const notices = [];
  client.on("notice", (notice) => notices.push(notice.message));
  await client.connect();
  const simple = await client.query("SELECT count(*) AS n FROM edge");
  const parameters = await client.query("SELECT count(*) FROM edge WHERE src = $1", [3]);
  const named = [];
  for (const value of [3, 4]) {
    const query = { name: "by-source", text: "SELECT count(*) FROM edge WHERE src = $1" };
    named.push((await client.query({ ...query, values: [value] })).rows[0].count);
  }
  let refused = null;
  try {
    await client.query("SELECT * FROM edge");
  } catch (error) {
    refused = error.code;
  }
  const after = await client.query("SELECT 1 AS one");
  await client.end();
  console.log(
    JSON.stringify({
      simple: simple.rows[0].n,
      parameters: parameters.rows[0].count,
      named,
      refused,
      after: after.rows[0].one,
      notices: notices.length,
    }),
  );
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
