import { networkRequest } from '@keelson/container-network';
import type { PodSandboxConfig, SandboxId } from '@keelson/container-runtime';
import type { ContainerDetails } from '../api/documents.ts';
import type { SandboxRecord } from '../model/records.ts';
import type { Surroundings } from '../surroundings.ts';
import { writeResolvConf } from './resolv-conf.ts';

/** Network and name service of sandboxes, as far as they are not the engine's business. */
export class SandboxNetwork {
  readonly #around: Surroundings;
  readonly #nodeIp: () => string;

  constructor(around: Surroundings, nodeIp: () => string) {
    this.#around = around;
    this.#nodeIp = nodeIp;
  }

  /** For a sandbox that has just been started. */
  async connect(details: ContainerDetails, config: PodSandboxConfig, signal: AbortSignal | undefined): Promise<void> {
    const { Id: id, State, ResolvConfPath = '' } = details;
    const { network } = this.#around.options;
    if (network !== undefined && config.securityContext?.namespaces?.network !== 'node') {
      const { ips } = await network.add(networkRequest(id, netnsOf(State.Pid), config), signal && { signal });
      this.#around.records.change(id, { ips });
    }
    if (config.dns === undefined || ResolvConfPath === '') return;
    if (!(await writeResolvConf(ResolvConfPath, id, config.dns)))
      this.#around.logger.warn('the engine gives a sandbox the resolv.conf of the machine, which is left as it is', {
        sandbox: id,
      });
  }

  /** Takes the network back; `pid` is 0 for a sandbox that does not run. */
  async disconnect(id: SandboxId, pid: number, signal?: AbortSignal): Promise<void> {
    await this.#around.options.network?.remove({ sandboxId: id, netnsPath: netnsOf(pid) }, signal && { signal });
  }

  /** The main one first. */
  ipsOf(details: ContainerDetails, { namespaces }: SandboxRecord): readonly string[] {
    if (namespaces.network === 'node') return [this.#nodeIp()];
    const { IPAddress, GlobalIPv6Address, Networks } = details.NetworkSettings ?? {};
    const all = [
      ...(this.#around.records.get(details.Id).ips ?? []),
      ...[IPAddress, GlobalIPv6Address],
      ...Object.values(Networks ?? {}).flatMap((own) => [own.IPAddress, own.GlobalIPv6Address]),
    ];
    return [...new Set(all.filter((ip) => ip !== undefined && ip !== ''))] as string[];
  }
}

function netnsOf(pid: number): string {
  return `/proc/${pid}/ns/net`;
}
