import test, { type ExecutionContext } from 'ava';
import { createControlPlane, loadCredentials } from 'keelson';
import { type BodyTraffic, type Protocol, sendBodies } from '../../src/faults/body-traffic.ts';
import { directoryFor, faults, progress } from '../../src/faults/fault-run.ts';
import { startKeelson } from '../../src/keelson-process.ts';
import { readKubeconfig } from '../../src/read-kubeconfig.ts';

type Target = Pick<BodyTraffic, 'url' | 'tls'>;

/**
 * Lengths of bodies, and the share of the requests that have each: those between one and four TLS records are the most
 * sensitive.
 */
const lengths = [
  { bytes: 1_000, share: 0.2 },
  { bytes: 17_000, share: 0.3 },
  { bytes: 40_000, share: 0.3 },
  { bytes: 64_000, share: 0.18 },
  { bytes: 400_000, share: 0.018 },
  { bytes: 3_000_000, share: 0.002 },
] as const;
const connectionCounts = [1, 8, 64] as const;

async function ownProcess(t: ExecutionContext, secure: boolean): Promise<Target> {
  const insecure = secure ? [] : ['--insecure'];
  const server = await startKeelson(await directoryFor(t), [
    '--storage',
    'memory:',
    '--log-level',
    'error',
    ...insecure,
  ]);
  t.teardown(() => server.kill());
  if (!secure) return server;
  const { authority, certificate, key } = await readKubeconfig(server.kubeconfig);
  return { url: server.url, tls: { ca: authority, cert: certificate, key } };
}

async function sameProcess(t: ExecutionContext, secure: boolean): Promise<Target> {
  const plane = await createControlPlane({ controllers: false });
  t.teardown(() => plane.close());
  if (!secure) return plane.listen();
  const credentials = await loadCredentials(await directoryFor(t), '127.0.0.1', Date.now());
  const { url } = await plane.listen({ credentials });
  const { authority, admin } = credentials;
  return { url, tls: { ca: authority, cert: admin.certificate, key: admin.key } };
}

for (const [place, start] of [
  ['in another process', ownProcess],
  ['in the same process', sameProcess],
] as const) {
  for (const protocol of ['HTTP/1.1', 'HTTP/1.1 over TLS', 'HTTP/2 over TLS'] satisfies Protocol[]) {
    const all = faults(30, 10_000);
    test.serial(
      `${all} bodies of 1 KB to 3 MB by ${protocol} to a server ${place} are answered, and so are short requests between them`,
      async (t) => {
        t.timeout(600_000);
        const target = await start(t, protocol !== 'HTTP/1.1');
        let done = 0;
        for (const connections of connectionCounts) {
          for (const { bytes, share } of lengths) {
            const bodies = Math.max(1, Math.round((all * share) / connectionCounts.length));
            const requests = bodies * 2;
            const { answers, failures } = await sendBodies({ ...target, protocol, connections, bytes, requests });
            t.deepEqual(
              [...new Set(failures)],
              [],
              `${failures.length} of ${requests} with ${bytes} bytes on ${connections}`,
            );
            const { 429: refused = 0, ...served } = answers;
            // A slow machine rejects some requests because of overload, which is a response.
            t.is(
              (served[200] ?? 0) + (served[201] ?? 0) + refused,
              requests,
              `${bytes} bytes on ${connections} connections`,
            );
            done += bodies;
            progress(t, done, all, () => `${bytes} bytes on ${connections} connections`);
          }
        }
      },
    );
  }
}
