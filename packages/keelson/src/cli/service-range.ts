import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import type { Logger } from '@keelson/core/runtime';
import type { ServerOptions } from '../config/options.ts';
import { AddressRange, defaultClusterIpRange } from '../service-addresses/address-range.ts';
import { kubeconfigFile } from '../tls/kubeconfig.ts';

/** Name of the file in the data directory that contains the range of cluster addresses, unless it is the default. */
const file = 'service-cluster-ip-range';
/** The networks 127.96.0.0/16 to 127.111.0.0/16. */
const candidates = Array.from({ length: 16 }, (_, index) => `127.${96 + index}.0.0/16`);

/** The range of cluster addresses of a running `keelson up`. `release` allows other processes to choose it. */
export interface ServiceRange {
  readonly serviceClusterIpRange: string;
  release(): void;
}

/**
 * Chooses the range of cluster addresses, unless an option sets it: the range of an existing data directory, or for a
 * new one the first range that no other `keelson up` of this machine uses. A process claims its range by an abstract
 * Unix socket. Such sockets belong to a network namespace, as loopback addresses do, and the system closes them when
 * the process ends.
 */
export async function claimServiceRange(
  options: Pick<ServerOptions, 'data' | 'storage' | 'serviceClusterIpRange' | 'serviceProxy'>,
  logger: Logger,
): Promise<ServiceRange> {
  const { data, storage, serviceClusterIpRange: given, serviceProxy = true } = options;
  const path = join(data, file);
  const recorded = (await readFile(path, 'utf8').catch(() => '')).trim();
  // The addresses of existing services are in the range of earlier starts, or in that of other servers on this storage.
  const isNew = !existsSync(join(data, kubeconfigFile)) && /^(memory|lmdb):/.test(String(storage));
  const fixed = given ?? (recorded !== '' ? recorded : isNew && serviceProxy ? undefined : defaultClusterIpRange);
  for (const range of fixed === undefined ? candidates : [fixed]) {
    const claim = serviceProxy ? await claimed(range) : undefined;
    if (claim === 'used' && fixed === undefined) continue;
    if (claim === 'used')
      logger.warn(
        `another keelson up of this machine uses ${range} for services; choose another network with --service-cluster-ip-range`,
      );
    if (fixed === undefined && range !== defaultClusterIpRange) await writeFile(path, `${range}\n`);
    return { serviceClusterIpRange: range, release: () => claim !== 'used' && claim?.close() };
  }
  logger.warn(`all networks from ${candidates[0]} to ${candidates.at(-1)} are used by other processes of keelson up`);
  return { serviceClusterIpRange: defaultClusterIpRange, release: () => {} };
}

/** Undefined: this system has no abstract sockets, or the range is not one of loopback addresses. */
async function claimed(ranges: string): Promise<Server | 'used' | undefined> {
  const [first = ''] = ranges.split(',');
  if (process.platform !== 'linux' || !first.startsWith('127.')) return undefined;
  const { text } = new AddressRange(first, '--service-cluster-ip-range');
  const server = createServer((socket) => socket.destroy()).unref();
  return new Promise((resolve) => {
    server.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code === 'EADDRINUSE' ? 'used' : undefined));
    server.listen({ path: `\0keelson-services-${text}` }, () => resolve(server));
  });
}
