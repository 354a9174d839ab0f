import { connect } from 'node:http2';
import { Agent, request } from 'node:https';
import anyTest, { type TestFn } from 'ava';
import { type KeelsonProcess, removeDirectory, startKeelson, temporaryDirectory } from '../../src/keelson-process.ts';
import { readKubeconfig } from '../../src/read-kubeconfig.ts';

const test = anyTest as TestFn<{ server: KeelsonProcess }>;
let data: string;
let server: KeelsonProcess;

test.before(async () => {
  data = await temporaryDirectory();
  server = await startKeelson(data, ['--storage', 'memory:']);
});

test.after.always(async () => {
  await server.stop();
  await removeDirectory(data);
});

interface Answer {
  readonly status: number;
  readonly body: string;
}

function overHttp2(
  session: ReturnType<typeof connect>,
  headers: Record<string, string>,
  body?: string,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const stream = session.request(headers);
    let status = 0;
    let text = '';
    stream.setEncoding('utf8');
    stream.on('response', (answer) => {
      status = answer[':status'] ?? 0;
    });
    stream.on('data', (chunk: string) => {
      text += chunk;
    });
    stream.on('end', () => resolve({ status, body: text }));
    stream.on('error', reject);
    stream.end(body);
  });
}

test('many requests and watches share one HTTP/2 connection, each with the identity of its client certificate', async (t) => {
  const { authority, certificate, key } = await readKubeconfig(server.kubeconfig);
  const session = connect(server.url, { ca: authority, cert: certificate, key });
  t.teardown(() => session.close());
  const path = '/api/v1/namespaces/default/configmaps';
  const watches = Array.from({ length: 20 }, () =>
    overHttp2(session, { ':path': `${path}?watch=1&timeoutSeconds=2&fieldSelector=metadata.name!%3Dkube-root-ca.crt` }),
  );
  const created = await Promise.all(
    Array.from({ length: 30 }, (_, i) =>
      overHttp2(
        session,
        { ':path': path, ':method': 'POST', 'content-type': 'application/json' },
        JSON.stringify({ metadata: { name: `m-${i}` } }),
      ),
    ),
  );
  t.true(created.every(({ status }) => status === 201));
  for (const { status, body } of await Promise.all(watches)) {
    t.is(status, 200);
    t.is(body.trim().split('\n').length, 30);
  }
});

test('a connection without a certificate is anonymous in HTTP/2 as well, with access to few paths', async (t) => {
  const { authority } = await readKubeconfig(server.kubeconfig);
  const session = connect(server.url, { ca: authority });
  t.teardown(() => session.close());
  t.is((await overHttp2(session, { ':path': '/api/v1/namespaces' })).status, 401);
  t.is((await overHttp2(session, { ':path': '/readyz' })).status, 200);
});

test('an HTTP/1.1 client is served on the same port', async (t) => {
  const { authority, certificate, key } = await readKubeconfig(server.kubeconfig);
  const agent = new Agent({ ca: authority, cert: certificate, key });
  t.teardown(() => agent.destroy());
  const { status, version } = await new Promise<{ status: number | undefined; version: string }>((resolve, reject) => {
    request(`${server.url}/api/v1/namespaces`, { agent }, (response) => {
      response.resume();
      resolve({ status: response.statusCode, version: response.httpVersion });
    })
      .once('error', reject)
      .end();
  });
  t.is(status, 200);
  t.is(version, '1.1');
});

test('a certificate of another authority is rejected with 401', async (t) => {
  const otherData = await temporaryDirectory();
  const other = await startKeelson(otherData, ['--storage', 'memory:']);
  const { certificate, key } = await readKubeconfig(other.kubeconfig);
  await other.stop();
  await removeDirectory(otherData);
  const { authority } = await readKubeconfig(server.kubeconfig);
  const session = connect(server.url, { ca: authority, cert: certificate, key });
  t.teardown(() => session.close());
  t.is((await overHttp2(session, { ':path': '/api/v1/namespaces' })).status, 401);
});
