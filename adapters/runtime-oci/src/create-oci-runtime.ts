import { join } from 'node:path';
import { findTool, overlayWorks } from '@keelson/container-host';
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
import { findBinary } from './binary/find-binary.ts';
import { OciBinary } from './binary/oci-binary.ts';
import { type Machine, readMachine } from './bundle/machine.ts';
import { OciContainer } from './container/oci-container.ts';
import type { OciContext } from './container/oci-context.ts';
import { installPrograms } from './launch/programs.ts';
import { monitorScript } from './launch/scripts.ts';
import { OciRuntime } from './oci-runtime.ts';
import type { OciRuntimeOptions } from './options.ts';
import { OciSandbox } from './sandbox/oci-sandbox.ts';
import { tryBinary } from './sandbox/try-binary.ts';

const neededTools = ['sh', 'mv', 'mkfifo', 'setsid', 'flock', 'mount', 'umount', 'unshare', 'nsenter', 'tar'];
const defaultRelistPeriodMs = 10_000;
const defaultMountpoint = '/sys/fs/cgroup';
const defaultParent = '/keelson';

/**
 * Opens the state directory and adopts the containers recorded in it: those that are running, that ended while no
 * runtime was open, and that were never started. Disposing of the runtime leaves containers running. Only one runtime
 * at a time may use a state directory.
 *
 * @throws RuntimeError `Unsupported` when the platform is not Linux, the process is not root, a tool is missing, or
 *   there is no OCI binary that works on this machine
 */
export async function createOciRuntime(options: OciRuntimeOptions): Promise<ContainerEngine> {
  const {
    clock = systemClock,
    logger = silentLogger,
    relistPeriodMs = defaultRelistPeriodMs,
    nodeIp = findNodeIp,
    network,
  } = options;
  const { mountpoint: cgroupMountpoint = defaultMountpoint, parent: cgroupParent = defaultParent } =
    options.cgroups ?? {};
  checkMachine();
  const { path, version } = await findBinary(options.binary, cgroupMountpoint);

  const state = new StateDirectory(options.stateDirectory, monitorScript, ['pods', 'oci', 'programs']);
  const { rebooted } = await state.prepare();
  const programs = await installPrograms(join(state.root, 'programs'));
  const binary = new OciBinary(path, version, join(state.root, 'oci'));
  const { seccomp } = await tryBinary(binary, programs, join(state.root, 'programs'), {
    mountpoint: cgroupMountpoint,
    parent: cgroupParent,
  });
  const overlay = await overlayWorks(state.root);
  const machine = await readMachine(cgroupMountpoint);
  const cgroups = await Cgroups.find({ mountpoint: cgroupMountpoint, parent: cgroupParent });
  const sources = options.imageSources ?? [];
  const { registries } = options;
  const images = new ImageStore({ folder: state.images, sources, clock, ...(registries && { registries }) });
  await images.load();

  const shared = createContainerContext({ state, clock, logger, onKeeperLost: () => void inventory.keepLogs() });
  const around: OciContext = { ...shared, binary, programs, machine, cgroups, cgroupMountpoint };
  const sandboxes = { around, network, cgroupParent };
  const inventory = new Inventory<OciSandbox, OciContainer>({
    ...{ around, logger, relistPeriodMs },
    sandbox: (record, ready) => new OciSandbox(sandboxes, record, ready),
    container: (record) => new OciContainer(around, record),
  });
  await inventory.load(rebooted);
  await state.confirmBoot();
  for (const sandbox of inventory.sandboxes.values())
    if (sandbox.ready && !(await sandbox.isWhole())) await sandbox.stop();
  await network?.sweep(new Set(inventory.sandboxes.keys()));
  await inventory.keepLogs();

  const capabilities = capabilitiesOf({
    machine,
    cgroups,
    seccomp,
    pull: sources.length > 0 || registries !== undefined,
    podNetwork: network !== undefined,
  });
  const address = typeof nodeIp === 'string' ? () => nodeIp : nodeIp;
  const runtime = new OciRuntime({
    around,
    images,
    overlay,
    seccomp,
    sandboxes,
    inventory,
    capabilities,
    nodeIp: address,
  });
  return withDeadlines({ runtime, images }, { clock });
}

function checkMachine(): void {
  if (process.platform !== 'linux') throw new RuntimeError('Unsupported', 'the OCI runtime requires Linux');
  if (process.getuid?.() !== 0) throw new RuntimeError('Unsupported', 'the OCI runtime needs to be root');
  const missing = neededTools.filter((name) => findTool(name) === undefined);
  if (missing.length > 0)
    throw new RuntimeError('Unsupported', `the OCI runtime requires these programs: ${missing.join(', ')}`);
}

interface DetectedFeatures {
  readonly machine: Machine;
  readonly cgroups: Cgroups;
  readonly seccomp: boolean;
  readonly pull: boolean;
  readonly podNetwork: boolean;
}

function capabilitiesOf({ machine, cgroups, seccomp, pull, podNetwork }: DetectedFeatures): RuntimeCapabilities {
  return {
    rootFilesystem: 'image',
    podNetwork,
    hostNetwork: true,
    mounts: true,
    readonlyMounts: true,
    exactMounts: false,
    users: true,
    memoryLimits: cgroups.has('memory'),
    cpuLimits: cgroups.has('cpu'),
    updateResources: true,
    containerPid: true,
    sharedPid: true,
    privileged: true,
    capabilitySets: true,
    readonlyRootfs: true,
    noNewPrivileges: true,
    seccomp,
    apparmor: machine.apparmor,
    sysctls: true,
    hostPorts: podNetwork,
    devices: true,
    tty: machine.terminals,
    exec: true,
    attach: true,
    portForward: true,
    events: true,
    stats: true,
    logs: true,
    pullProgress: true,
    pull,
    survivesRestart: true,
  };
}
