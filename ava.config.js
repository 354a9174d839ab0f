import { writeGroups } from './scripts/test-groups.mjs';

/**
 * The longest files, the longest first: they start first, so that no slot runs one of them alone at the end. Figures of
 * `node scripts/test-times.mjs`.
 */
const longest = [
  'adapters/runtime-engine/dist/test/conformance.test.js',
  'adapters/storage-postgres/dist/test/resource-storage.test.js',
  'adapters/runtime-cri/dist/test/conformance.test.js',
  'test/dist/test/faults/kill-server.test.js',
  'test/dist/test/kubectl/on-lmdb.test.js',
  'adapters/storage-postgres/dist/test/conformance.test.js',
  'adapters/runtime-engine/dist/test/pods.test.js',
  'benchmarks/dist/test/smoke.test.js',
  'adapters/storage-etcd3/dist/test/resource-storage.test.js',
  'adapters/storage-etcd3/dist/test/conformance.test.js',
  'test/dist/test/faults/two-servers-postgres.test.js',
  'test/dist/test/faults/two-servers-etcd.test.js',
  'test/dist/test/faults/kept-connections.test.js',
  'adapters/storage-etcd3/dist/test/faults.test.js',
  'test/dist/test/faults/network.test.js',
  'test/dist/test/faults/etcd-cluster.test.js',
  'adapters/runtime-oci/dist/test/conformance.test.js',
  'test/dist/test/packages/install.test.js',
  'test/dist/test/kubectl/jobs.test.js',
];
/**
 * Groups in the order of their starts: those of adapters wait for daemons beside the static checks, those of `test`
 * take long, and those of packages are short.
 */
const groups = ['adapters', 'test', ''];
/** Position of a file among the longest; groups follow, then all others. */
const rank = (file) => {
  const index = longest.findIndex((name) => file.endsWith(name));
  if (index !== -1) return index;
  const group = groups.findIndex((name) => file.includes(`/dist/groups/${name}`));
  return longest.length + (group === -1 ? groups.length : group);
};

/**
 * Files of the nightly run alone, and of a run that names them: kubectl and other clients work in the same way on every
 * storage, the agent on every runtime, and the adapters on every version of their servers (ADR 51).
 */
const nightly = [
  'adapters/storage-etcd3/dist/test/variants.test.js',
  'adapters/storage-postgres/dist/test/variants.test.js',
  'test/dist/test/agent/same-pods-on-engine.test.js',
  'test/dist/test/agent/same-pods-on-oci.test.js',
  'test/dist/test/client/contract-etcd.test.js',
  'test/dist/test/client/contract-postgres.test.js',
  'test/dist/test/kubectl/on-etcd.test.js',
  'test/dist/test/kubectl/on-postgres.test.js',
];

const core = 'packages/core';
const allTests = ['{packages,adapters,examples}/*/dist/test/**/*.test.js', '{test,benchmarks}/dist/test/**/*.test.js'];
/** Creates the groups of these workspaces; returns patterns that add the groups and exclude their members. */
function grouped(folder, isIncluded) {
  const members = writeGroups(import.meta.dirname, folder, isIncluded, [...longest, ...nightly]);
  return [`${folder}/*.test.js`, ...members.map((file) => `!${file}`)];
}
const modules = ['--conditions=keelson-modules'];
/**
 * V8 optimises a function later than by default: most test processes end before the optimised code has saved the
 * processor time of its compilation, a tenth of theirs. Later versions of Node reject this option.
 */
const optimiseLater = process.versions.node.startsWith('20.') ? ['--interrupt-budget=500000'] : [];
/** The parts of the whole suite, which run beside each other, with groups of small files (ADR 50). */
const parts = {
  // Tests of core import single modules of it, and packages that import core: both must load the same classes.
  modules: () => ({
    files: [
      `${core}/dist/test/**/*.test.js`,
      ...grouped('test/dist/groups-of-core', (workspace) => workspace === core),
    ],
    concurrency: 1,
    nodeArguments: [...modules, ...optimiseLater],
  }),
  // All other tests load other packages from their bundles, as users do, in a third of the time.
  bundles: () => ({
    files: [
      ...allTests,
      `!${core}/**`,
      ...nightly.map((file) => `!${file}`),
      ...grouped('test/dist/groups', (workspace) => workspace !== core),
    ],
    // More than continuous integration has cores (two): on average a file uses a third of one, and waits for daemons,
    // disks and grace periods for the rest of its time.
    concurrency: 6,
    nodeArguments: optimiseLater,
  }),
};
/** A run of named files: each has a process of its own, which loads every package as modules. */
const namedFiles = () => ({ files: allTests, concurrency: 5, nodeArguments: modules });

const part = process.env['KEELSON_TEST_PART'];
const run = part === undefined ? namedFiles : parts[part];
if (run === undefined) throw new Error(`KEELSON_TEST_PART is ${Object.keys(parts).join(' or ')}, got "${part}"`);

export default {
  ...run(),
  // A process can be ended at any time; a thread that waits inside a native library cannot.
  workerThreads: false,
  sortTestFiles: (one, other) => rank(one) - rank(other) || (one < other ? -1 : 1),
  // Idle limit of the whole run, in which a new machine compiles a client; scripts/test-file.mjs limits single tests.
  timeout: '5m',
  require: ['./scripts/test-file.mjs'],
  verbose: false,
  environmentVariables: {
    // Agents that tests start as commands do not change kernel settings and cgroups of this machine.
    KEELSON_AGENT_SYSCTL_ROOT: '/nonexistent',
    KEELSON_AGENT_CGROUP_ROOT: '/nonexistent',
    // Programs in Go, such as kubectl and etcd, collect garbage a quarter as often: their heaps are small.
    GOGC: '400',
  },
};
