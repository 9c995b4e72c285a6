// The bridge's work as Node does it: what is read, line by line, goes to everybody as it is.
// `cargo xtask bench serve` measures the server beside it. Ends with its input.
import { createInterface } from "node:readline";
import { WebSocketServer } from "ws";

const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
server.on("listening", () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});

const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  // One buffer for all: a string would be encoded again for each.
  const bytes = Buffer.from(line);
  for (const client of server.clients) client.send(bytes, { binary: false });
});
lines.on("close", () => process.exit());
