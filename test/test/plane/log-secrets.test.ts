import { writeFile } from 'node:fs/promises';
import { connect as connectHttp2 } from 'node:http2';
import { connect as connectTcp, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import test from 'ava';
import { removeDirectory, startKeelson, temporaryDirectory } from '../../src/keelson-process.ts';

const canary = 'CANARY-8f14e45fceea167a';
/** The canary as it is, in base64 at each offset, and as a list of bytes. */
const forms = [
  canary,
  ...[0, 1, 2].map((skip) => Buffer.from(canary.slice(skip)).toString('base64').slice(0, 24)),
  [...Buffer.from(canary)].join(','),
];

/** Sends bytes and waits until the server has answered and closed, or half a second has passed. */
function send(open: () => Socket, bytes: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = open();
    const timer = setTimeout(() => socket.destroy(), 500);
    socket.on('error', () => {});
    socket.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
    socket.resume().write(Buffer.from(bytes, 'latin1'));
  });
}

const starts = [
  'GET /version',
  'GET /readyz?verbose',
  `GET /nothing?token=${canary}`,
  'GET /api/v1/namespaces',
  'POST /api/v1/namespaces',
];
const ends = [
  '\0\0garbage',
  'GET / HTTP/9.9\r\n\r\n',
  'GET http://[bad HTTP/1.1\r\nHost: x\r\n\r\n',
  `X-${canary}: \0\r\n\r\n`,
  '',
];

for (const insecure of [false, true]) {
  test.serial(
    `no bearer token and no packet reaches the log of a server ${insecure ? 'without TLS' : 'with TLS'}`,
    async (t) => {
      const data = await temporaryDirectory();
      t.teardown(() => removeDirectory(data));
      const tokens = join(data, 'tokens.csv');
      await writeFile(tokens, `${canary},ann,1,system:masters\n`, { mode: 0o600 });
      const server = await startKeelson(data, [
        ...['--storage', 'memory:', '--log-level', 'debug'],
        ...(insecure ? ['--insecure'] : ['--token-auth-file', tokens]),
      ]);
      t.teardown(() => server.kill());
      const port = Number(new URL(server.url).port);
      const open = () =>
        insecure
          ? connectTcp(port, '127.0.0.1')
          : connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] });
      const requests = starts.flatMap((start) =>
        ends.map((end) => `${start} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${canary}\r\n\r\n${end}`),
      );
      const chunked = `POST /version HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${canary}\r\nTransfer-Encoding: chunked\r\n\r\nzz`;
      await Promise.all([...requests, chunked].map((request) => send(open, request)));
      if (!insecure) {
        const session = connectHttp2(server.url, { rejectUnauthorized: false });
        session.on('error', () => {});
        const stream = session.request({ ':path': '/version', authorization: `Bearer ${canary}` });
        stream.on('error', () => {});
        await new Promise((resolve) => stream.once('response', resolve));
        session.destroy();
      }
      for (let round = 0; round < 4; round += 1) {
        const flood = Array.from({ length: 50 }, () => `GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n\0${canary}`);
        await Promise.all(flood.map((request) => send(open, request)));
      }
      t.is(await server.stop(), 0);
      const { stdout, stderr } = server.output();
      for (const form of forms) t.false((stdout + stderr).includes(form), form);
      const alarming = stderr.split('\n').filter((line) => /"level":"(?:warn|error|fatal)"/.test(line));
      t.deepEqual(alarming, [], 'what clients send is no warning');
    },
  );
}
