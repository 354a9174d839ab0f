import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { open } from 'lmdb';

/**
 * The least that a Node server can do for each scenario: bare `node:http`, no routing beyond a prefix, no checks.
 * Answers are bytes that were made before; a write is parsed and stringified once and kept: in a map, or with
 * `--durable PATH` in a durable LMDB before it is answered.
 *
 * stdin: `object JSON` and `list COUNT` set what GET answers; `/list`, `/page` and `/selected` are lists of the object.
 */

const durablePath = process.argv[process.argv.indexOf('--durable') + 1];
const database = process.argv.includes('--durable')
  ? open<Buffer, string>({ path: durablePath ?? '', encoding: 'binary', overlappingSync: false })
  : undefined;

let object: Buffer = Buffer.from('{}');
let page: Buffer = Buffer.from('{}');
let list: Buffer = Buffer.from('{}');
let written = 0;
const kept = new Map<string, Buffer>();

/** The least that a label selector costs: a look at the labels of every object, and the bytes of those that match. */
let labelled: { readonly labels: Readonly<Record<string, string>>; readonly bytes: Buffer }[] = [];

function selected(): Buffer {
  const found: Buffer[] = [];
  for (const { labels, bytes } of labelled) if (labels['shard'] === '7') found.push(bytes);
  return Buffer.concat(found);
}

function listOf(count: number): Buffer {
  return Buffer.from(
    `{"kind":"PodList","items":[${Array.from({ length: count }, () => object.toString()).join(',')}]}`,
  );
}

const server = createServer((request, response) => {
  const answer = (code: number, body: Buffer) => {
    response.writeHead(code, { 'Content-Type': 'application/json', 'Content-Length': body.length });
    response.end(body);
  };
  if (request.method === 'GET') {
    if (request.url === '/list') answer(200, list);
    else if (request.url === '/page') answer(200, page);
    else if (request.url === '/selected') answer(200, selected());
    else answer(200, object);
    return;
  }
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.from(JSON.stringify(JSON.parse(Buffer.concat(chunks).toString())));
    written += 1;
    if (database === undefined) {
      // A server that accepts an object has to retain it, and the garbage collector has to visit it.
      kept.set(`key-${written}`, body);
      answer(201, body);
      return;
    }
    void database.put(`key-${written}`, body).then(() => answer(201, body));
  });
});

let pending = '';
process.stdin.on('data', (chunk) => {
  pending += String(chunk);
  for (;;) {
    const end = pending.indexOf('\n');
    if (end === -1) return;
    const line = pending.slice(0, end);
    pending = pending.slice(end + 1);
    if (line.startsWith('object ')) object = Buffer.from(line.slice(7));
    if (line.startsWith('list ')) {
      const count = Number(line.slice(5));
      list = listOf(count);
      page = listOf(Math.min(500, count));
      labelled = Array.from({ length: count }, (_, i) => ({
        labels: { app: 'bench', shard: String(i % 100) },
        bytes: object,
      }));
    }
  }
});

server.listen(0, '127.0.0.1', () => process.stdout.write(`ready ${(server.address() as AddressInfo).port}\n`));
process.once('SIGTERM', () => process.exit(0));
