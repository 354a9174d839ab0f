import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { open } from 'lmdb';

/**
 * The least that a Node server can do for each scenario: bare `node:http`, no routing beyond a prefix, no checks. Answers are bytes that were
 * made before; a write is parsed and stringified once, and with `--durable PATH` put into a durable LMDB before it is answered.
 *
 * stdin: `object JSON` and `list COUNT` set what GET answers.
 */

const durablePath = process.argv[process.argv.indexOf('--durable') + 1];
const database = process.argv.includes('--durable')
  ? open<Buffer, string>({ path: durablePath ?? '', encoding: 'binary', overlappingSync: false })
  : undefined;

let object: Buffer = Buffer.from('{}');
let page: Buffer = Buffer.from('{}');
let list: Buffer = Buffer.from('{}');
let written = 0;

function listOf(count: number): Buffer {
  return Buffer.from(`{"kind":"PodList","items":[${Array.from({ length: count }, () => object.toString()).join(',')}]}`);
}

const server = createServer((request, response) => {
  const answer = (code: number, body: Buffer) => {
    response.writeHead(code, { 'Content-Type': 'application/json', 'Content-Length': body.length });
    response.end(body);
  };
  if (request.method === 'GET') {
    answer(200, request.url?.startsWith('/list') ? list : request.url?.startsWith('/page') ? page : object);
    return;
  }
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.from(JSON.stringify(JSON.parse(Buffer.concat(chunks).toString())));
    if (database === undefined) {
      answer(201, body);
      return;
    }
    written += 1;
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
      list = listOf(Number(line.slice(5)));
      page = listOf(500);
    }
  }
});

server.listen(0, '127.0.0.1', () => process.stdout.write(`ready ${(server.address() as AddressInfo).port}\n`));
process.once('SIGTERM', () => process.exit(0));
