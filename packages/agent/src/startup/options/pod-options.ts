import { headerList, mapStringString, stringSlice } from './list-types.ts';
import { option } from './option.ts';
import { bool, duration, int, int32, text } from './scalar-types.ts';

const none = { shownDefault: 'none' };
const noPairs: ReadonlyMap<string, string> = new Map();
const everySource: readonly string[] = ['*'];
type Words = readonly string[];

export const podOptions = [
  option('max-pods', int32, 110, 'Pods that the node takes.'),
  option('pods-per-core', int32, 0, 'Pods per core; never more than --max-pods in all. 0 is no such limit.', none),
  option('pod-manifest-path', text, '', 'Directory of pod manifests, or one file.', none),
  option('manifest-url', text, '', 'URL of pod manifests.', none),
  option(
    'manifest-url-header',
    headerList,
    [],
    'HTTP headers for --manifest-url, name:value separated by commas; may be repeated, and headers of one name are sent in order.',
    none,
  ),
  option('file-check-frequency', duration, 20_000, 'How often manifest files are looked at, besides when they change.'),
  option('http-check-frequency', duration, 20_000, 'How often --manifest-url is fetched.'),
  option('sync-frequency', duration, 60_000, 'Longest time between two comparisons of what runs with what should.'),
  option('runonce', bool, false, 'Starts the pods of manifest files and URLs, and ends. Excludes --enable-server.'),
  option('cpu-cfs-quota', bool, true, 'Enforces CPU limits by CFS quota.'),
  option(
    'cpu-manager-policy',
    text,
    'none',
    'none, or static: containers of guaranteed pods have the whole CPUs that they ask for.',
  ),
  option('cpu-manager-reconcile-period', duration, 10_000, 'How often CPU sets are put right.', {
    shownDefault: '10s; unset, that of --node-status-update-frequency',
  }),
  option('cgroups-per-qos', bool, true, 'Makes cgroups for pods, by quality of service.'),
  option('cgroup-driver', text, 'cgroupfs', 'How cgroups are named: cgroupfs or systemd.'),
  option('cgroup-root', text, '', 'Cgroup below which pods run; it has to exist.', {
    shownDefault: '/; without --cgroups-per-qos, that of the runtime',
  }),
  option('agent-cgroups', text, '', 'Absolute name of the cgroup that the agent runs in.', none),
  option('runtime-cgroups', text, '', 'Absolute name of the cgroup that the runtime runs in.', none),
  option(
    'system-cgroups',
    text,
    '',
    'Cgroup for processes that are in none and are not of the kernel; only a restart of the machine undoes it.',
    none,
  ),
  option(
    'enforce-node-allocatable',
    stringSlice,
    ['pods'] as Words,
    'What is held to its share: pods, system-reserved, cluster-reserved; the last two need their cgroup option.',
  ),
  option(
    'cluster-reserved',
    mapStringString,
    noPairs,
    'Amounts kept for the cluster: cpu, memory, ephemeral-storage.',
    none,
  ),
  option('cluster-reserved-cgroup', text, '', 'Top cgroup of the cluster’s own components.', { shownDefault: 'empty' }),
  option(
    'system-reserved',
    mapStringString,
    noPairs,
    'Amounts kept for the system: cpu, memory, ephemeral-storage.',
    none,
  ),
  option('system-reserved-cgroup', text, '', 'Top cgroup of the system’s components.', { shownDefault: 'empty' }),
  option(
    'experimental-allocatable-ignore-eviction',
    bool,
    false,
    'Lets pods have what hard eviction thresholds keep free.',
  ),
  option(
    'experimental-qos-reserved',
    mapStringString,
    noPairs,
    'Percentages of what pods request that is kept from lesser ones; memory only.',
    none,
  ),
  option(
    'experimental-kernel-memcg-notification',
    bool,
    false,
    'Acts on thresholds of memory.available within a second, by a look each second: the notice of the kernel is out of reach of Node.',
  ),
  option(
    'experimental-allowed-unsafe-sysctls',
    stringSlice,
    [] as Words,
    'Unsafe sysctls that pods may set, or patterns that end in *.',
    none,
  ),
  option('host-ipc-sources', stringSlice, everySource, "Sources whose pods may use the host's IPC namespace."),
  option('host-network-sources', stringSlice, everySource, "Sources whose pods may use the host's network."),
  option('host-pid-sources', stringSlice, everySource, "Sources whose pods may use the host's PID namespace."),
  option('allow-privileged', bool, false, 'Lets containers ask for privileged mode.'),
  option(
    'protect-kernel-defaults',
    bool,
    false,
    'Fails when one of six settings of the kernel is not what the agent wants; otherwise it sets them, and restores them when it ends.',
  ),
  option('fail-swap-on', bool, true, 'Refuses to start on a machine with swap.'),
  option('oom-score-adj', int32, -999, 'Out-of-memory score adjustment of the agent, from -1000 to 1000.'),
  option('max-open-files', int, 1_000_000, 'Files that the agent may have open.'),
] as const;
