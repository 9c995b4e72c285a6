// Serves the example and the package that it uses; nothing is built.
//
//   node serve.mjs [PORT]

import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const HERE = fileURLToPath(new URL(".", import.meta.url));
/** Beside the example in its repository; elsewhere npm has installed it. */
const SOURCE = fileURLToPath(new URL("../../linkspan", import.meta.url));
const PACKAGE = "/node_modules/linkspan/";
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css" };

/** Starts it, and gives back its address and what stops it. */
export async function serve(port = 0) {
  const server = createServer((request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, "http://localhost").pathname));
    const isPackage = path.startsWith(PACKAGE) && existsSync(SOURCE);
    const file = isPackage ? join(SOURCE, path.slice(PACKAGE.length)) : join(HERE, path === "/" ? "index.html" : path);
    const type = TYPES[extname(file)];
    if (type === undefined || !existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, { "Content-Type": type, "Cache-Control": "no-store" });
    return createReadStream(file).pipe(response);
  });
  await new Promise((done) => server.listen(port, "127.0.0.1", done));
  return { url: `http://127.0.0.1:${server.address().port}`, stop: () => (server.close(), server.closeAllConnections()) };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { url } = await serve(Number(process.argv[2] ?? 3000));
  console.log(`open ${url}, with \`linkspan serve --allow-origin ${url}\` beside it`);
}
