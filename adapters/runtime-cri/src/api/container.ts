import { bytes, flag, integer, integers, list, text, textMap, texts, time, wrappedInteger } from '../wire/kinds.ts';
import { at, message } from '../wire/message.ts';
import {
  ImageSpec,
  KeyValue,
  LinuxContainerResources,
  NamespaceOption,
  SecurityProfileMessage,
  SelinuxOption,
} from './common.ts';
import { PodSandboxConfigMessage } from './sandbox.ts';

export const ContainerMetadataMessage = message({ name: at(1, text), attempt: at(2, integer) });

export const MountMessage = message({
  containerPath: at(1, text),
  hostPath: at(2, text),
  readonly: at(3, flag),
  selinuxRelabel: at(4, flag),
  propagation: at(5, integer),
});
export const MountPropagation = { private: 0, hostToContainer: 1, bidirectional: 2 } as const;

export const LinuxContainerSecurityContext = message({
  capabilities: at(1, message({ addCapabilities: at(1, texts), dropCapabilities: at(2, texts) })),
  privileged: at(2, flag),
  namespaceOptions: at(3, NamespaceOption),
  selinuxOptions: at(4, SelinuxOption),
  runAsUser: at(5, wrappedInteger),
  runAsUsername: at(6, text),
  readonlyRootfs: at(7, flag),
  supplementalGroups: at(8, integers),
  apparmorProfile: at(9, text),
  seccompProfilePath: at(10, text),
  noNewPrivs: at(11, flag),
  runAsGroup: at(12, wrappedInteger),
  maskedPaths: at(13, texts),
  readonlyPaths: at(14, texts),
  seccomp: at(15, SecurityProfileMessage),
  apparmor: at(16, SecurityProfileMessage),
});

export const ContainerConfigMessage = message({
  metadata: at(1, ContainerMetadataMessage),
  image: at(2, ImageSpec),
  command: at(3, texts),
  args: at(4, texts),
  workingDir: at(5, text),
  envs: at(6, list(KeyValue)),
  mounts: at(7, list(MountMessage)),
  devices: at(8, list(message({ containerPath: at(1, text), hostPath: at(2, text), permissions: at(3, text) }))),
  labels: at(9, textMap),
  annotations: at(10, textMap),
  logPath: at(11, text),
  stdin: at(12, flag),
  stdinOnce: at(13, flag),
  tty: at(14, flag),
  linux: at(
    15,
    message({ resources: at(1, LinuxContainerResources), securityContext: at(2, LinuxContainerSecurityContext) }),
  ),
});

export const CreateContainerRequest = message({
  podSandboxId: at(1, text),
  config: at(2, ContainerConfigMessage),
  sandboxConfig: at(3, PodSandboxConfigMessage),
});

/** The message of all requests and responses that contain only the id of a container. */
export const ContainerIdMessage = message({ containerId: at(1, text) });
/** `timeout` is the grace period before SIGKILL in seconds. */
export const StopContainerRequest = message({ containerId: at(1, text), timeout: at(2, integer) });

export const ContainerStateNumber = { created: 0, running: 1, exited: 2, unknown: 3 } as const;

export const ListContainersRequest = message({
  filter: at(
    1,
    message({
      id: at(1, text),
      state: at(2, message({ state: at(1, integer) })),
      podSandboxId: at(3, text),
      labelSelector: at(4, textMap),
    }),
  ),
});

/** One item of a list of containers. */
export const ContainerMessage = message({
  id: at(1, text),
  podSandboxId: at(2, text),
  metadata: at(3, ContainerMetadataMessage),
  image: at(4, ImageSpec),
  imageRef: at(5, text),
  state: at(6, integer),
  createdAt: at(7, time),
  labels: at(8, textMap),
  annotations: at(9, textMap),
  imageId: at(10, text),
});

export const ListContainersResponse = message({ containers: at(1, list(ContainerMessage)) });

export const ContainerStatusRequest = message({ containerId: at(1, text), verbose: at(2, flag) });
export const ContainerStatusMessage = message({
  id: at(1, text),
  metadata: at(2, ContainerMetadataMessage),
  state: at(3, integer),
  createdAt: at(4, time),
  startedAt: at(5, time),
  finishedAt: at(6, time),
  exitCode: at(7, integer),
  image: at(8, ImageSpec),
  imageRef: at(9, text),
  reason: at(10, text),
  message: at(11, text),
  labels: at(12, textMap),
  annotations: at(13, textMap),
  mounts: at(14, list(MountMessage)),
  logPath: at(15, text),
  resources: at(16, message({ linux: at(1, LinuxContainerResources) })),
  imageId: at(17, text),
});
export const ContainerStatusResponse = message({ status: at(1, ContainerStatusMessage), info: at(2, textMap) });

export const UpdateContainerResourcesRequest = message({
  containerId: at(1, text),
  linux: at(2, LinuxContainerResources),
});

/** `timeout` is the time limit of the command in seconds; 0 for no limit. */
export const ExecSyncRequestMessage = message({ containerId: at(1, text), cmd: at(2, texts), timeout: at(3, integer) });
export const ExecSyncResponse = message({ stdout: at(1, bytes), stderr: at(2, bytes), exitCode: at(3, integer) });
