import { realpath, writeFile } from 'node:fs/promises';
import type { DnsConfig } from '@keelson/container-runtime';

/** The file as resolvers read it. */
export function resolvConf({ servers, searches, options }: DnsConfig): string {
  const lines = servers.map((server) => `nameserver ${server}`);
  if (searches.length > 0) lines.push(`search ${searches.join(' ')}`);
  if (options.length > 0) lines.push(`options ${options.join(' ')}`);
  return lines.map((line) => `${line}\n`).join('');
}

/**
 * Replaces what the engine wrote for the sandbox, which all its containers see. In place: the file is mounted, a new
 * one would not be seen. The machine's own file is never touched, though an engine may name it for sandboxes with the
 * network of the machine.
 */
export async function writeResolvConf(path: string, sandboxId: string, dns: DnsConfig): Promise<boolean> {
  if (!(await realpath(path)).includes(sandboxId)) return false;
  await writeFile(path, resolvConf(dns));
  return true;
}
