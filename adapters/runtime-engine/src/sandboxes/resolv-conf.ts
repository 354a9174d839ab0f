import { realpath, writeFile } from 'node:fs/promises';
import type { DnsConfig } from '@keelson/container-runtime';

/** The content of a `resolv.conf`. */
export function resolvConf({ servers, searches, options }: DnsConfig): string {
  const lines = servers.map((server) => `nameserver ${server}`);
  if (searches.length > 0) lines.push(`search ${searches.join(' ')}`);
  if (options.length > 0) lines.push(`options ${options.join(' ')}`);
  return lines.map((line) => `${line}\n`).join('');
}

/**
 * Replaces the content of the sandbox's `resolv.conf`, which is mounted into all containers of the sandbox. The file is
 * written in place, because a new file would not appear in the mounts. For sandboxes with the network of the machine an
 * engine may report the machine's own file, which is never written.
 *
 * @returns whether the file was written
 */
export async function writeResolvConf(path: string, sandboxId: string, dns: DnsConfig): Promise<boolean> {
  if (!(await realpath(path)).includes(sandboxId)) return false;
  await writeFile(path, resolvConf(dns));
  return true;
}
