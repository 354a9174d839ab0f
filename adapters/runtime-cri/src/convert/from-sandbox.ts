import type { PodSandbox, PodSandboxStatus, SandboxState } from '@keelson/container-runtime';
import { type PodSandboxMessage, type PodSandboxStatusMessage, SandboxStateNumber } from '../api/sandbox.ts';
import type { Fields } from '../wire/message.ts';
import { withoutNotes } from './notes.ts';
import { fromNamespaces } from './security.ts';

export function sandboxState(state: number | undefined): SandboxState {
  return (state ?? 0) === SandboxStateNumber.ready ? 'ready' : 'notReady';
}

export function fromSandbox(message: Fields<typeof PodSandboxMessage>): PodSandbox {
  const { name = '', namespace = '', uid = '', attempt = 0 } = message.metadata ?? {};
  return {
    id: message.id ?? '',
    metadata: { name, namespace, uid, attempt },
    state: sandboxState(message.state),
    createdAt: message.createdAt ?? 0,
    labels: message.labels ?? {},
    annotations: withoutNotes(message.annotations),
  };
}

/** `nodeIp` is asked for the address of a pod that uses the machine's network: daemons do not know that one. */
export function fromSandboxStatus(
  message: Fields<typeof PodSandboxStatusMessage>,
  nodeIp: () => string,
): PodSandboxStatus {
  const sandbox = fromSandbox(message);
  const namespaces = fromNamespaces(message.linux?.namespaces?.options ?? {});
  const { ip = '', additionalIps = [] } = message.network ?? {};
  const own = [ip, ...additionalIps.map((entry) => entry.ip ?? '')].filter((address) => address !== '');
  const onNode = namespaces.network === 'node' && own.length === 0 && sandbox.state === 'ready';
  // A stopped sandbox has given its addresses back, whatever the daemon remembers of them.
  const ips = sandbox.state === 'ready' ? (onNode ? [nodeIp()] : own) : [];
  return { ...sandbox, ips, namespaces };
}
