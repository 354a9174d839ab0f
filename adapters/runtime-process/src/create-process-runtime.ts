import { findTool } from '@keelson/container-host';
import { ImageStore } from '@keelson/container-images';
import { Cgroups, createContainerContext, Inventory, StateDirectory } from '@keelson/container-monitor';
import {
  type ContainerEngine,
  findNodeIp,
  type RuntimeCapabilities,
  RuntimeError,
  withDeadlines,
} from '@keelson/container-runtime';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import { ProcessContainer, type ProcessContext, ProcessSandbox } from './container/process-container.ts';
import { builtinImages } from './host-image.ts';
import { monitorScript } from './launch/monitor-script.ts';
import { findPermissions, type Permissions } from './machine/permissions.ts';
import type { ProcessRuntimeOptions } from './options.ts';
import { ProcessRuntime } from './process-runtime.ts';

const neededTools = ['sh', 'env', 'mv', 'mkfifo', 'setsid', 'flock'];
const defaultRelistPeriodMs = 10_000;

/**
 * Opens the state directory and adopts the containers recorded in it: those that are running, that ended while no
 * runtime was open, and that were never started. Disposing of the runtime leaves containers running. Only one runtime
 * at a time may use a state directory.
 *
 * @throws RuntimeError `Unsupported` when the platform is not Linux or a tool is missing
 */
export async function createProcessRuntime(options: ProcessRuntimeOptions): Promise<ContainerEngine> {
  const {
    clock = systemClock,
    logger = silentLogger,
    relistPeriodMs = defaultRelistPeriodMs,
    nodeIp = findNodeIp,
  } = options;
  if (process.platform !== 'linux') throw new RuntimeError('Unsupported', 'the process runtime requires Linux');
  const missing = neededTools.filter((name) => findTool(name) === undefined);
  if (missing.length > 0)
    throw new RuntimeError('Unsupported', `the process runtime requires these programs: ${missing.join(', ')}`);

  const state = new StateDirectory(options.stateDirectory, monitorScript);
  const { rebooted } = await state.prepare();
  const permissions = await findPermissions(state.root);
  const cgroups = await Cgroups.find(options.cgroups);
  const images = new ImageStore({
    ...{ folder: state.images, sources: options.imageSources ?? [], builtin: builtinImages, clock },
    ...(options.registries && { registries: options.registries }),
    refusal: (name) => imageRefusal(name, permissions, options),
  });
  await images.load();

  const shared = createContainerContext({ state, clock, logger, onKeeperLost: () => void inventory.keepLogs() });
  const around: ProcessContext = { ...shared, cgroups };
  const inventory = new Inventory<ProcessSandbox, ProcessContainer>({
    around,
    logger,
    relistPeriodMs,
    sandbox: (record, ready) => new ProcessSandbox(around, record, ready),
    container: (record) => new ProcessContainer(around, record),
  });
  await inventory.load(rebooted);
  await state.confirmBoot();
  await inventory.keepLogs();

  const runtime = new ProcessRuntime({
    around,
    inventory,
    images,
    permissions,
    capabilities: capabilitiesOf(permissions, cgroups, options),
    nodeIp: typeof nodeIp === 'string' ? () => nodeIp : nodeIp,
  });
  return withDeadlines({ runtime, images }, { clock });
}

/** The reason why images other than `host` cannot run: there is no image source, or the agent may not chroot. */
function imageRefusal(name: string, permissions: Permissions, options: ProcessRuntimeOptions): string | undefined {
  if (!hasImageSource(options))
    return `the process runtime cannot run "${name}": it has no image source and can run "host" only`;
  if (!permissions.chroot) return `the process runtime cannot run "${name}": it may not chroot on this machine`;
  return undefined;
}

function hasImageSource({ imageSources = [], registries }: ProcessRuntimeOptions): boolean {
  return imageSources.length > 0 || registries !== undefined;
}

function capabilitiesOf(
  permissions: Permissions,
  cgroups: Cgroups,
  options: ProcessRuntimeOptions,
): RuntimeCapabilities {
  const { mounts, chroot, users, noNewPrivileges, root, terminals } = permissions;
  return {
    rootFilesystem: chroot ? 'chroot' : 'host',
    podNetwork: false,
    hostNetwork: true,
    mounts,
    readonlyMounts: mounts,
    exactMounts: true,
    users,
    memoryLimits: cgroups.has('memory'),
    cpuLimits: cgroups.has('cpu'),
    updateResources: true,
    containerPid: false,
    sharedPid: false,
    privileged: root,
    capabilitySets: false,
    readonlyRootfs: mounts && chroot,
    noNewPrivileges,
    seccomp: false,
    apparmor: false,
    sysctls: false,
    hostPorts: false,
    devices: false,
    tty: terminals,
    exec: true,
    attach: true,
    portForward: true,
    events: true,
    stats: true,
    logs: true,
    pullProgress: true,
    pull: chroot && hasImageSource(options),
    survivesRestart: true,
  };
}
