import type { NamespaceOptions, PodSandboxConfig } from '@keelson/container-runtime';
import { PodSandboxConfigMessage, type PodSandboxStatusMessage, Protocol } from '../api/sandbox.ts';
import type { Fields } from '../wire/message.ts';
import { sandboxNote, withNote, withoutNotes } from './notes.ts';
import { toResources } from './resources.ts';
import { fromNamespaces, toNamespaces, wrapped } from './security.ts';

export type SandboxMessage = Fields<typeof PodSandboxConfigMessage>;

/** The configuration as CRI has it. CRI wants it again with every container, so it also keeps a note of itself. */
export function toSandboxMessage(config: PodSandboxConfig, unifiedCgroups: boolean): SandboxMessage {
  const { dns, metadata, securityContext: security = {}, resources } = config;
  const settings: SandboxMessage = {
    hostname: config.hostname,
    logDirectory: config.logDirectory,
    dnsConfig: dns,
    portMappings: config.portMappings?.map((port) => ({ ...port, protocol: Protocol[port.protocol] })),
    linux: {
      cgroupParent: config.cgroupParent,
      sysctls: config.sysctls,
      resources: resources && toResources(resources, unifiedCgroups),
      securityContext: {
        namespaceOptions: security.namespaces && toNamespaces(security.namespaces),
        runAsUser: wrapped(security.runAsUser),
        runAsGroup: wrapped(security.runAsGroup),
        supplementalGroups: security.supplementalGroups,
        readonlyRootfs: security.readonlyRootfs,
        privileged: security.privileged,
      },
    },
  };
  const note = PodSandboxConfigMessage.encode(settings).toString('base64');
  return { ...settings, metadata, labels: config.labels, annotations: withNote(config.annotations, sandboxNote, note) };
}

/** The configuration of a sandbox that another process made, as far as the daemon can tell. */
export function recallSandbox(status: Fields<typeof PodSandboxStatusMessage>): SandboxMessage {
  const note = status.annotations?.[sandboxNote];
  const settings: SandboxMessage =
    note === undefined ? {} : PodSandboxConfigMessage.decode(Buffer.from(note, 'base64'));
  return {
    linux: { securityContext: { namespaceOptions: status.linux?.namespaces?.options } },
    ...settings,
    metadata: status.metadata,
    labels: status.labels,
    annotations: note === undefined ? withoutNotes(status.annotations) : status.annotations,
  };
}

export function namespacesOf(sandbox: SandboxMessage): NamespaceOptions {
  return fromNamespaces(sandbox.linux?.securityContext?.namespaceOptions ?? {});
}
