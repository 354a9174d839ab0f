import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP port that hands each connection to the next of several servers. */
export interface Balancer {
  readonly port: number;
  close(): Promise<void>;
}

/** Opens the port on loopback. Connections are passed on as they are, TLS included. */
export async function startBalancer(ports: readonly number[]): Promise<Balancer> {
  const sockets = new Set<Socket>();
  let next = 0;
  const server = createServer((inbound) => {
    const outbound = connect({ host: '127.0.0.1', port: ports[next++ % ports.length] ?? 0 });
    for (const [from, to] of [
      [inbound, outbound],
      [outbound, inbound],
    ] as const) {
      sockets.add(from);
      from.pipe(to);
      from.on('error', () => to.destroy());
      from.once('close', () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
