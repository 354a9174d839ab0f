export default {
  files: ['{packages,adapters,examples}/*/dist/test/**/*.test.js', 'test/dist/**/*.test.js', 'benchmarks/dist/test/**/*.test.js'],
  // Processes can be ended whatever they do; a thread that waits within a native library cannot.
  workerThreads: false,
  // More than cores: many tests wait for daemons, disks and deadlines.
  concurrency: 3,
  timeout: '120s',
  require: ['./scripts/ends-by-itself.mjs'],
  verbose: false,
  // Agents that tests start as commands leave the settings of this machine's kernel alone.
  environmentVariables: { KEELSON_AGENT_SYSCTL_ROOT: '/nonexistent' },
};
