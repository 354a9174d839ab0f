import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import type { Logger } from '@keelson/core/runtime';
import type { ServerOptions } from '../config/options.ts';
import { AddressRange, defaultClusterIpRange } from '../service-addresses/address-range.ts';
import { kubeconfigFile } from '../tls/kubeconfig.ts';

/** The range of a data directory that does not have the default one. */
const file = 'service-cluster-ip-range';
/** 127.96.0.0/16 and the following. */
const candidates = Array.from({ length: 16 }, (_, index) => `127.${96 + index}.0.0/16`);

/** The range of the cluster addresses of a `keelson up`, which no other one of the machine has while this runs. */
export interface ServiceRange {
  readonly serviceClusterIpRange: string;
  release(): void;
}

/**
 * Chooses the range when no option does: the one that the data directory has, or for a new one the first range that no
 * other `keelson up` of this machine uses. Loopback addresses belong to a network namespace, as the abstract sockets do
 * by which running processes find each other; the system closes them when a process ends.
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
  logger.warn(`all networks from ${candidates[0]} to ${candidates.at(-1)} are used by others of this machine`);
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
