export default {
  files: [
    '{packages,adapters,examples}/*/dist/test/**/*.test.js',
    'test/dist/**/*.test.js',
    'benchmarks/dist/test/**/*.test.js',
  ],
  // Processes can be ended whatever they do; a thread that waits within a native library cannot.
  workerThreads: false,
  // As many as continuous integration has cores. A third one makes the run two minutes shorter, and in every second run
  // a test of daemons late.
  concurrency: 2,
  timeout: '120s',
  // Tests see single modules of their package, and so everybody else has to; servers that they start are bundles, as
  // users have them.
  nodeArguments: ['--conditions=keelson-modules'],
  require: ['./scripts/test-file.mjs'],
  verbose: false,
  // Agents that tests start as commands leave the settings of this machine's kernel, and its cgroups, alone.
  environmentVariables: { KEELSON_AGENT_SYSCTL_ROOT: '/nonexistent', KEELSON_AGENT_CGROUP_ROOT: '/nonexistent' },
};
