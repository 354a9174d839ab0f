import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

// Loaded separately: this process stores nothing, and a test suite waits for its start.

const help = `etcd of Keelson, for suites that use envtest. It stores nothing: objects are in the API server.

  --listen-client-urls=URL   address on which /health and /version are answered
`;

/**
 * Runs the process that envtest starts as etcd: it answers health checks until it is terminated. Other flags of etcd
 * have no meaning, because nothing is stored.
 *
 * @returns the exit code
 */
export async function runEnvtestEtcd(args: readonly string[]): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(help);
    return 0;
  }
  const flag = '--listen-client-urls';
  const at = args.indexOf(flag);
  const urls = args.find((word) => word.startsWith(`${flag}=`))?.slice(flag.length + 1) ?? (at < 0 ? '' : args[at + 1]);
  const [first = ''] = (urls ?? '').split(',');
  if (!URL.canParse(first)) {
    process.stderr.write(
      `keelson: ${flag} must be a URL such as http://127.0.0.1:2379, not ${JSON.stringify(first)}\n`,
    );
    return 2;
  }
  const { hostname, port } = new URL(first);
  const server = createServer((request, response) => {
    const body = {
      '/health': { health: 'true', reason: '' },
      '/version': { etcdserver: '3.5.0', etcdcluster: '3.5.0' },
    };
    const answer = body[request.url?.split('?', 1)[0] as keyof typeof body] as object | undefined;
    response.writeHead(answer ? 200 : 404, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(answer ?? { message: 'this etcd stores nothing; the objects are in the API server' }));
  });
  server.listen(Number(port), hostname.replace(/^\[|\]$/g, ''), () => {
    const { port: bound } = server.address() as AddressInfo;
    process.stdout.write(`keelson: etcd answers health checks on http://${hostname}:${bound}\n`);
  });
  await Promise.race([
    once(server, 'error').then(([error]) => {
      throw error;
    }),
    once(process, 'SIGTERM'),
    once(process, 'SIGINT'),
  ]);
  server.closeAllConnections();
  server.close();
  return 0;
}
