import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

/** Range from which ports are chosen. Lower ports are those of well-known programs, higher ones are node ports. */
const bounds = { first: 15_000, end: 30_000 };

/**
 * Numbers that the system assigns to no listener on port 0 and to no connection: it has a range of its own, which on
 * Linux begins at 32768 unless it is configured, and on other systems at 49152.
 */
function unassigned(): { readonly first: number; readonly end: number } {
  let assigned = bounds.end;
  try {
    assigned = Number.parseInt(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8'), 10);
  } catch {}
  return assigned > bounds.first ? { ...bounds, end: Math.min(bounds.end, assigned) } : bounds;
}

/**
 * Takes a number from the other processes that use this function until this process ends, by a UDP socket with the
 * number `mark`. Returns false when another process has it, or a program listens on the TCP port.
 */
async function reserve(port: number, mark: number): Promise<boolean> {
  const reservation = createSocket('udp4');
  const server = createServer();
  try {
    await once(reservation.bind({ port: mark, address: '127.0.0.1', exclusive: true }), 'listening');
    await once(server.listen({ port, exclusive: true }), 'listening');
  } catch (error) {
    reservation.close();
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return false;
    throw error;
  }
  await once(server.close(), 'close');
  reservation.unref();
  return true;
}

/**
 * Different ports without a listener on any address, for programs that cannot choose one themselves. Until this process
 * ends the system assigns none of them to a listener or a connection, and no other process receives one from here.
 */
export async function freePorts(count: number): Promise<number[]> {
  const { first, end } = unassigned();
  const numbers = Math.floor((end - first) / 2);
  // Processes that start together seldom try the same numbers.
  const start = Math.floor(Math.random() * numbers);
  const ports: number[] = [];
  for (let tried = 0; ports.length < count; tried += 1) {
    if (tried === numbers) throw new Error(`no port from ${first} to ${first + numbers - 1} is free`);
    const port = first + ((start + tried) % numbers);
    if (await reserve(port, port + numbers)) ports.push(port);
  }
  return ports;
}

/** One of {@link freePorts}. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}
