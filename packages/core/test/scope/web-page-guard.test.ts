import test from 'ava';
import { type PageHeaders, WebPageGuard } from '../../src/scope/web-page-guard.ts';

const guard = new WebPageGuard({ names: ['dev.example', '192.0.2.7', '2001:db8::1'], remedy: 'do this' });

for (const host of [
  ...[
    'localhost',
    'LOCALHOST:8080',
    'localhost.',
    'a.localhost:1',
    '127.0.0.1',
    '127.1.2.3:6443',
    '[::1]',
    '[::1]:8080',
  ],
  ...['dev.example', 'Dev.Example:80', 'dev.example.', '192.0.2.7:1', '[2001:db8::1]:1'],
]) {
  test(`the host ${host} is served`, (t) => {
    t.is(guard.problem({ host }), undefined);
  });
}

for (const host of [
  ...[
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '127.evil.example',
    'evil-localhost',
    'xlocalhost',
    '',
  ],
  ...[
    '192.0.2.8',
    '0.0.0.0',
    '[::]',
    '10.0.0.1:80',
    'dev.example.evil',
    'localhost:80:80',
    'localhost@evil',
    'evil#localhost',
    '127.1',
  ],
]) {
  test(`the host ${JSON.stringify(host)} is refused`, (t) => {
    t.regex(
      guard.problem({ host }) ?? '',
      /^without credentials this server is not served under the host ".*"; do this$/,
    );
  });
}

test('any address may be allowed, any name not', (t) => {
  const any = new WebPageGuard({ anyAddress: true });
  for (const host of ['192.0.2.8:10250', '[fd00::1]:10255', '0.0.0.0', '127.0.0.1'])
    t.is(any.problem({ host }), undefined, host);
  t.truthy(any.problem({ host: 'evil.example' }));
});

const host = '127.0.0.1:6443';
const served: readonly PageHeaders[] = [
  {},
  { host },
  { ':authority': host },
  { host, 'sec-fetch-site': 'none' },
  { host, 'sec-fetch-site': 'same-origin' },
  { host, origin: `http://${host}` },
  { host: '127.0.0.1', origin: 'http://127.0.0.1:80' },
  { host: 'LocalHost:1', origin: 'http://localhost:1' },
  // kubectl proxy and development servers put their own host in, and pass on what the browser says.
  { host, origin: 'http://localhost:8001', 'sec-fetch-site': 'same-origin' },
];
for (const headers of served) {
  test(`served: ${JSON.stringify(headers)}`, (t) => {
    t.is(guard.problem(headers), undefined);
  });
}

const refused: readonly PageHeaders[] = [
  { ':authority': 'evil.example' },
  { host, 'sec-fetch-site': 'cross-site' },
  { host, 'sec-fetch-site': 'same-site' },
  { host, 'sec-fetch-site': '' },
  { host, 'sec-fetch-site': 'same-origin, cross-site' },
  { host, origin: 'https://evil.example' },
  { host, origin: 'http://localhost:3000' },
  { host, origin: 'null' },
  { host, origin: '' },
  { host, origin: 'file://' },
  { host, origin: 'http://evil.example', 'sec-fetch-site': 'same-origin' },
  { host, origin: `http://${host}`, 'sec-fetch-site': 'cross-site' },
  { host: 'evil.example', origin: 'http://evil.example', 'sec-fetch-site': 'same-origin' },
  { origin: 'http://localhost' },
];
for (const headers of refused) {
  test(`refused: ${JSON.stringify(headers)}`, (t) => {
    t.regex(guard.problem(headers) ?? '', /^without credentials /);
  });
}
