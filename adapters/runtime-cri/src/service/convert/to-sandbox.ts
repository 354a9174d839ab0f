import type { PodSandbox, PodSandboxStatus } from '@keelson/container-runtime';
import { type PodSandboxMessage, type PodSandboxStatusMessage, SandboxStateNumber } from '../../api/sandbox.ts';
import { toNamespaces } from '../../convert/security.ts';
import type { Fields } from '../../wire/message.ts';

/** A sandbox as lists have it. */
export function toSandbox(sandbox: PodSandbox): Fields<typeof PodSandboxMessage> {
  const { id, metadata, createdAt, labels, annotations } = sandbox;
  return { id, metadata, state: SandboxStateNumber[sandbox.state], createdAt, labels, annotations };
}

/** A sandbox with all that is known of it. */
export function toSandboxStatus(status: PodSandboxStatus): Fields<typeof PodSandboxStatusMessage> {
  const [ip, ...others] = status.ips;
  return {
    ...toSandbox(status),
    network: { ip, additionalIps: others.map((other) => ({ ip: other })) },
    linux: { namespaces: { options: toNamespaces(status.namespaces) } },
  };
}
