import { readFile, writeFile } from 'node:fs/promises';
import { hostname as machineName } from 'node:os';
import { passable } from '@keelson/container-monitor';
import { type DnsConfig, type PodSandboxConfig, RuntimeError } from '@keelson/container-runtime';
import type { PodPlace } from '../bundle/pod-place.ts';

/** File mode of the files that containers of any user must be able to read. */
const mode = 0o644;

const plainHosts = '127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n';

/** Host name of the containers of a pod. @throws RuntimeError `InvalidArgument` */
export function hostnameOf(config: PodSandboxConfig, place: PodPlace): string {
  if (place.uts === undefined || !config.hostname) return machineName();
  if (config.hostname.length > 64)
    throw new RuntimeError('InvalidArgument', `host name is longer than 64 characters: "${config.hostname}"`);
  return passable(config.hostname, /[\0\n]/, 'host name');
}

/** Writes the files that are mounted below /etc in every container of the pod. */
export async function writePodFiles(place: PodPlace, config: PodSandboxConfig, hostname: string): Promise<void> {
  await writeFile(place.resolvConf, await resolvConf(config.dns), { mode });
  await writeFile(place.hostname, `${hostname}\n`, { mode });
  const own = place.uts === undefined ? undefined : `${plainHosts}127.0.1.1\t${hostname}\n`;
  await writeFile(place.hosts, own ?? (await readFile('/etc/hosts', 'utf8').catch(() => plainHosts)), { mode });
}

async function resolvConf(dns: DnsConfig | undefined): Promise<string> {
  if (dns === undefined) return readFile('/etc/resolv.conf', 'utf8').catch(() => '');
  const lines = dns.servers.map((server) => `nameserver ${server}`);
  if (dns.searches.length > 0) lines.push(`search ${dns.searches.join(' ')}`);
  if (dns.options.length > 0) lines.push(`options ${dns.options.join(' ')}`);
  for (const line of lines) passable(line, /[\0\n]/, 'DNS setting');
  return lines.map((line) => `${line}\n`).join('');
}
