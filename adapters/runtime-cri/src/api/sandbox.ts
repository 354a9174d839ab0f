import { flag, integer, integers, list, text, textMap, texts, time, wrappedInteger } from '../wire/kinds.ts';
import { at, message } from '../wire/message.ts';
import { LinuxContainerResources, NamespaceOption, SecurityProfileMessage, SelinuxOption } from './common.ts';

const PodSandboxMetadata = message({
  name: at(1, text),
  uid: at(2, text),
  namespace: at(3, text),
  attempt: at(4, integer),
});

const LinuxSandboxSecurityContext = message({
  namespaceOptions: at(1, NamespaceOption),
  selinuxOptions: at(2, SelinuxOption),
  runAsUser: at(3, wrappedInteger),
  readonlyRootfs: at(4, flag),
  supplementalGroups: at(5, integers),
  privileged: at(6, flag),
  seccompProfilePath: at(7, text),
  runAsGroup: at(8, wrappedInteger),
  seccomp: at(9, SecurityProfileMessage),
});

export const PodSandboxConfigMessage = message({
  metadata: at(1, PodSandboxMetadata),
  hostname: at(2, text),
  logDirectory: at(3, text),
  dnsConfig: at(4, message({ servers: at(1, texts), searches: at(2, texts), options: at(3, texts) })),
  portMappings: at(
    5,
    list(
      message({
        protocol: at(1, integer),
        containerPort: at(2, integer),
        hostPort: at(3, integer),
        hostIp: at(4, text),
      }),
    ),
  ),
  labels: at(6, textMap),
  annotations: at(7, textMap),
  linux: at(
    8,
    message({
      cgroupParent: at(1, text),
      securityContext: at(2, LinuxSandboxSecurityContext),
      sysctls: at(3, textMap),
      resources: at(5, LinuxContainerResources),
    }),
  ),
});

export const Protocol = { TCP: 0, UDP: 1, SCTP: 2 } as const;
export const SandboxStateNumber = { ready: 0, notReady: 1 } as const;

export const RunPodSandboxRequest = message({ config: at(1, PodSandboxConfigMessage), runtimeHandler: at(2, text) });

/** The message of all requests and responses that contain only the id of a sandbox. */
export const SandboxIdMessage = message({ podSandboxId: at(1, text) });

export const PodSandboxStatusMessage = message({
  id: at(1, text),
  metadata: at(2, PodSandboxMetadata),
  state: at(3, integer),
  createdAt: at(4, time),
  network: at(5, message({ ip: at(1, text), additionalIps: at(2, list(message({ ip: at(1, text) }))) })),
  linux: at(6, message({ namespaces: at(1, message({ options: at(2, NamespaceOption) })) })),
  labels: at(7, textMap),
  annotations: at(8, textMap),
});
export const PodSandboxStatusResponse = message({ status: at(1, PodSandboxStatusMessage) });

export const ListPodSandboxRequest = message({
  filter: at(
    1,
    message({ id: at(1, text), state: at(2, message({ state: at(1, integer) })), labelSelector: at(3, textMap) }),
  ),
});

/** One item of a list of sandboxes. */
export const PodSandboxMessage = message({
  id: at(1, text),
  metadata: at(2, PodSandboxMetadata),
  state: at(3, integer),
  createdAt: at(4, time),
  labels: at(5, textMap),
  annotations: at(6, textMap),
});
export const ListPodSandboxResponse = message({ items: at(1, list(PodSandboxMessage)) });
