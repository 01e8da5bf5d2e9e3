"""The console: a web page beside the proxy, for analysts and for the owner of the data."""
