import { realpath, writeFile } from 'node:fs/promises';
import { networkRequest } from '@keelson/container-network';
import type { DnsConfig, PodSandboxConfig, SandboxId } from '@keelson/container-runtime';
import type { ContainerDetails } from '../api/documents.ts';
import type { EngineContext } from '../containers/engine-context.ts';
import type { SandboxRecord } from '../model/records.ts';

/** Connects sandboxes through the network plugin and writes their name server settings. */
export class SandboxNetwork {
  readonly #context: EngineContext;
  readonly #nodeIp: () => string;

  constructor(context: EngineContext, nodeIp: () => string) {
    this.#context = context;
    this.#nodeIp = nodeIp;
  }

  /** Connects a sandbox and writes its name server settings; called once after its start. */
  async connect(details: ContainerDetails, config: PodSandboxConfig, signal: AbortSignal | undefined): Promise<void> {
    const { Id: id, State, ResolvConfPath = '' } = details;
    const { network } = this.#context.options;
    if (network !== undefined && config.securityContext?.namespaces?.network !== 'node') {
      const { ips } = await network.add(networkRequest(id, netnsOf(State.Pid), config), signal && { signal });
      this.#context.records.change(id, { ips });
    }
    if (config.dns === undefined || ResolvConfPath === '') return;
    if (!(await writeResolvConf(ResolvConfPath, id, config.dns)))
      this.#context.logger.warn('a sandbox uses the resolv.conf of the machine, which is not changed', {
        sandbox: id,
      });
  }

  /** Disconnects the sandbox; `pid` is 0 for a sandbox that does not run. */
  async disconnect(id: SandboxId, pid: number, signal?: AbortSignal): Promise<void> {
    await this.#context.options.network?.remove({ sandboxId: id, netnsPath: netnsOf(pid) }, signal && { signal });
  }

  /** Addresses of a sandbox, the primary address first. */
  ipsOf(details: ContainerDetails, { namespaces }: SandboxRecord): readonly string[] {
    if (namespaces.network === 'node') return [this.#nodeIp()];
    const { IPAddress, GlobalIPv6Address, Networks } = details.NetworkSettings ?? {};
    const all = [
      ...(this.#context.records.get(details.Id).ips ?? []),
      ...[IPAddress, GlobalIPv6Address],
      ...Object.values(Networks ?? {}).flatMap((own) => [own.IPAddress, own.GlobalIPv6Address]),
    ];
    return [...new Set(all.filter((ip) => ip !== undefined && ip !== ''))] as string[];
  }
}

function netnsOf(pid: number): string {
  return `/proc/${pid}/ns/net`;
}

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
