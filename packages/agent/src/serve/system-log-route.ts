import { constants, type FileHandle, open, readdir, readlink, realpath } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { HttpProblem } from './http/request.ts';
import type { Route } from './http/route.ts';

const notFound = () => new HttpProblem(404, '404 page not found');

/** `/logs/` and `/logs/{path}`: files and folders below the log directory of the host, and nothing outside of it. */
export function systemLogRoute(directory: string): Route {
  return {
    first: 'logs',
    methods: ['GET'],
    debug: true,
    async serve({ path, method, incoming, response }) {
      const names = path.slice(1);
      if (names.some((name) => name === '..' || name.includes('/') || name.includes('\0'))) throw notFound();
      const file = await openBelow(directory, names);
      try {
        const stats = await file.stat();
        if (stats.isDirectory()) {
          if (!incoming.url?.split('?')[0]?.endsWith('/')) redirectInto(response, names.at(-1) ?? 'logs');
          else sendPage(response, await listing(file));
          return;
        }
        // Only regular files have an end.
        if (!stats.isFile()) throw notFound();
        response.writeHead(200, {
          'Content-Type': 'text/plain; charset=utf-8',
          'Content-Length': stats.size,
          'X-Content-Type-Options': 'nosniff',
        });
        if (method === 'HEAD' || stats.size === 0) response.end();
        // A log that grows meanwhile is sent up to the announced length.
        else await pipeline(file.createReadStream({ end: stats.size - 1, autoClose: false }), response);
      } finally {
        await file.close();
      }
    },
  };
}

/** Opens a path below a directory. Links are followed only inside the directory. @throws HttpProblem 404 */
async function openBelow(directory: string, names: readonly string[]): Promise<FileHandle> {
  try {
    const root = await realpath(directory);
    // Opening a pipe must not wait for its writer.
    const file = await open(join(root, ...names), constants.O_RDONLY | constants.O_NONBLOCK);
    // Check the opened file, since its path may be replaced at any time.
    const real = await realName(file);
    if (real === root || real.startsWith(root === '/' ? root : `${root}/`)) return file;
    await file.close();
  } catch {
    // A file without read permission is reported like a missing one.
  }
  throw notFound();
}

const realName = (file: FileHandle): Promise<string> => readlink(`/proc/self/fd/${file.fd}`);

/** Redirects to the path with a trailing slash, so that relative links lead into the folder. */
function redirectInto(response: ServerResponse, folder: string): void {
  response.writeHead(301, { Location: `${encodeURIComponent(folder)}/`, 'Content-Length': 0 });
  response.end();
}

function sendPage(response: ServerResponse, page: string): void {
  const body = Buffer.from(page);
  response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8', 'Content-Length': body.length });
  response.end(body);
}

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&#34;',
  "'": '&#39;',
};
const escaped = (text: string) => text.replace(/[&<>"']/g, (sign) => escapes[sign] ?? sign);

async function listing(folder: FileHandle): Promise<string> {
  const entries = await readdir(`/proc/self/fd/${folder.fd}`, { withFileTypes: true });
  const names = entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name)).sort();
  // A colon in a name must not be parsed as the end of a URL scheme.
  const link = (name: string) =>
    `<a href="./${escaped(encodeURI(name).replace(/[?#]/g, encodeURIComponent))}">${escaped(name)}</a>\n`;
  return `<!doctype html>\n<pre>\n${names.map(link).join('')}</pre>\n`;
}
