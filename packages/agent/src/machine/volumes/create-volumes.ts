import type { ApiClient } from '@keelson/core';
import type { Logger } from '@keelson/core/runtime';
import { Node } from '@keelson/kinds';
import type { AgentPaths } from '../../base/agent-paths.ts';
import type { AgentConfig } from '../../base/config/agent-config.ts';
import { type RunProgram, runProgram } from '../../base/run-program.ts';
import { enteredHost, type HostAccess, localAccess } from '../host/host-access.ts';
import { FlexVolumes } from './flex-volumes.ts';
import { type Mounter, noMounter, systemMounter } from './mounter.ts';
import { checkCapabilities } from './network-mount.ts';
import { PodVolumes } from './pod-volumes.ts';
import { SubPaths } from './sub-path.ts';

/** What volumes are made with. An absent part is the one that the configuration selects. */
export interface VolumeDependencies {
  readonly api?: ApiClient;
  readonly host?: HostAccess;
  readonly mounter?: Mounter;
  readonly runProgram?: RunProgram;
  readonly logger: Logger;
}

export interface CreateVolumesOptions {
  readonly config: AgentConfig;
  readonly paths: AgentPaths;
  readonly dependencies: VolumeDependencies;
  /** Called when the set of attached volumes in the status of the node has changed. */
  readonly onInUse: () => void;
}

/** Volumes of pods, and their access to the host. */
export interface Volumes {
  readonly volumes: PodVolumes;
  readonly subPaths: SubPaths;
  readonly host: HostAccess;
  /** Must be called before the status of the node is reported. */
  start(): Promise<void>;
  /** Names of attached volumes in use, for the status of the node. */
  inUse(): readonly string[];
}

/** Creates the parts of volumes for the configuration. */
export function createVolumes(options: CreateVolumesOptions): Volumes {
  const { config, paths, dependencies, onInUse } = options;
  const run = dependencies.runProgram ?? runProgram;
  const host = dependencies.host ?? (config.containerized ? enteredHost(run) : localAccess(run));
  const mounter = dependencies.mounter ?? defaultMounter(config, host);
  const flex = new FlexVolumes({
    paths,
    host,
    mounter,
    pluginDirectory: config.volumePluginDir,
    nodeName: config.nodeName,
    attachedDevice: attachedDevice(options),
    onInUse,
  });
  // A configured mounter program brings its own helpers.
  const checks = config.checkNodeCapabilities && config.mounterPath === undefined;
  const volumes = new PodVolumes({
    paths,
    host,
    mounter,
    flex,
    logger: dependencies.logger,
    ...(checks && { checkCapabilities: (type) => checkCapabilities(type, host.files) }),
  });
  const subPaths = new SubPaths({ paths, host, mounter });
  return { volumes, subPaths, host, start: () => flex.start(), inUse: () => flex.inUse() };
}

/**
 * Only root can mount. An agent of another user, in development, runs without mounts unless a mounter program is
 * configured. For root a failed mount is an error.
 */
export function defaultMounter(
  { mounterPath, containerized }: Pick<AgentConfig, 'mounterPath' | 'containerized'>,
  host: HostAccess,
  uid = process.getuid?.(),
): Mounter {
  return uid === 0 || mounterPath !== undefined || containerized ? systemMounter(mounterPath, host) : noMounter;
}

/** Without an API server no controller attaches volumes. */
function attachedDevice({
  config,
  dependencies: { api },
}: CreateVolumesOptions): ((name: string) => Promise<string | undefined>) | undefined {
  if (!config.node.enableControllerAttachDetach || api === undefined) return undefined;
  return async (name) => {
    const { status } = await api.resource(Node).get(config.nodeName);
    const found = status?.volumesAttached?.find((attached) => attached.name === name);
    return found && (found.devicePath ?? '');
  };
}
