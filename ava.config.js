export default {
  files: ['{packages,adapters,examples}/*/dist/test/**/*.test.js', 'test/dist/**/*.test.js', 'benchmarks/dist/test/**/*.test.js'],
  // Processes can be ended whatever they do; a thread that waits within a native library cannot.
  workerThreads: false,
  // As many as continuous integration has cores: a third one made the run two minutes shorter and tests of daemons late.
  concurrency: 2,
  timeout: '120s',
  require: ['./scripts/ends-by-itself.mjs'],
  verbose: false,
  // Agents that tests start as commands leave the settings of this machine's kernel alone.
  environmentVariables: { KEELSON_AGENT_SYSCTL_ROOT: '/nonexistent' },
};
