import { bool, duration, text } from '@keelson/core/internal';
import { option } from './option.ts';
import { headerList, int, int32, mapStringString, stringSlice } from './value-types.ts';

const none = { shownDefault: 'none' };
const noPairs: ReadonlyMap<string, string> = new Map();
const everySource: readonly string[] = ['*'];
type Texts = readonly string[];

export const podOptions = [
  option('max-pods', int32, 110, 'Maximum number of pods on the node.'),
  option(
    'pods-per-core',
    int32,
    0,
    'Maximum number of pods per core; --max-pods still limits the total. 0 disables this limit.',
    none,
  ),
  option('pod-manifest-path', text, '', 'Directory of pod manifests, or one file.', none),
  option('manifest-url', text, '', 'URL of pod manifests.', none),
  option(
    'manifest-url-header',
    headerList,
    [],
    'HTTP headers for --manifest-url, name:value separated by commas; headers of one name are sent in order.',
    none,
  ),
  option(
    'file-check-frequency',
    duration,
    20_000,
    'How often manifest files are read, in addition to reads on changes.',
  ),
  option('http-check-frequency', duration, 20_000, 'How often --manifest-url is fetched.'),
  option(
    'sync-frequency',
    duration,
    60_000,
    'Maximum period between two synchronizations of running containers and their pods.',
  ),
  option('runonce', bool, false, 'Starts the pods of manifest files and URLs, and exits. Excludes --enable-server.'),
  option('cpu-cfs-quota', bool, true, 'Enforces CPU limits by CFS quota.'),
  option(
    'cpu-manager-policy',
    text,
    'none',
    'none, or static: containers of guaranteed pods have exclusive use of the whole CPUs that they request.',
  ),
  option('cpu-manager-reconcile-period', duration, 10_000, 'How often CPU sets are reconciled.', {
    shownDefault: '10s; unset, that of --node-status-update-frequency',
  }),
  option('cgroups-per-qos', bool, true, 'Creates cgroups for pods and for QoS classes.'),
  option('cgroup-driver', text, 'cgroupfs', 'How cgroups are named: cgroupfs or systemd.'),
  option('cgroup-root', text, '', 'Parent cgroup of pods; it must exist.', {
    shownDefault: '/; without --cgroups-per-qos, that of the runtime',
  }),
  option('agent-cgroups', text, '', 'Absolute name of the cgroup that the agent runs in.', none),
  option('runtime-cgroups', text, '', 'Absolute name of the cgroup that the runtime runs in.', none),
  option(
    'system-cgroups',
    text,
    '',
    'Cgroup for non-kernel processes that are in no cgroup; only a restart of the machine reverts it.',
    none,
  ),
  option(
    'enforce-node-allocatable',
    stringSlice,
    ['pods'] as Texts,
    'Limits that are enforced: pods, system-reserved, cluster-reserved; the last two need their cgroup option.',
  ),
  option(
    'cluster-reserved',
    mapStringString,
    noPairs,
    'Resources reserved for cluster components: cpu, memory, ephemeral-storage.',
    none,
  ),
  option('cluster-reserved-cgroup', text, '', 'Top-level cgroup of the cluster components.', { shownDefault: 'empty' }),
  option(
    'system-reserved',
    mapStringString,
    noPairs,
    'Resources reserved for the system: cpu, memory, ephemeral-storage.',
    none,
  ),
  option('system-reserved-cgroup', text, '', 'Top-level cgroup of the system components.', { shownDefault: 'empty' }),
  option(
    'experimental-allocatable-ignore-eviction',
    bool,
    false,
    'Calculates allocatable resources without subtracting hard eviction thresholds.',
  ),
  option(
    'experimental-qos-reserved',
    mapStringString,
    noPairs,
    'Percentages of pod requests that are reserved against pods of lower QoS classes; memory only.',
    none,
  ),
  option(
    'experimental-kernel-memcg-notification',
    bool,
    false,
    'Checks thresholds of memory.available every second; Node.js cannot receive the notifications of the kernel.',
  ),
  option(
    'experimental-allowed-unsafe-sysctls',
    stringSlice,
    [] as Texts,
    'Unsafe sysctls that pods may set; a pattern ends in *.',
    none,
  ),
  option('host-ipc-sources', stringSlice, everySource, "Sources whose pods may use the host's IPC namespace."),
  option('host-network-sources', stringSlice, everySource, "Sources whose pods may use the host's network."),
  option('host-pid-sources', stringSlice, everySource, "Sources whose pods may use the host's PID namespace."),
  option('allow-privileged', bool, false, 'Allows containers to request privileged mode.'),
  option(
    'protect-kernel-defaults',
    bool,
    false,
    'Fails when one of six kernel settings differs from the required value; otherwise the agent sets them.',
  ),
  option('fail-swap-on', bool, true, 'Refuses to start on a machine with swap.'),
  option('oom-score-adj', int32, -999, 'Out-of-memory score adjustment of the agent, from -1000 to 1000.'),
  option('max-open-files', int, 1_000_000, 'Maximum number of open files of the agent.'),
] as const;
