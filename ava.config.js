export default {
  files: ['{packages,adapters,examples}/*/dist/test/**/*.test.js', 'test/dist/**/*.test.js', 'benchmarks/dist/test/**/*.test.js'],
  // Processes can be ended whatever they do; a thread that waits within a native library cannot.
  workerThreads: false,
  // As many as continuous integration has cores: a third one made tests of daemons late and the run no shorter.
  concurrency: 2,
  timeout: '120s',
  require: ['./scripts/ends-by-itself.mjs'],
  verbose: false,
  // Agents that tests start as commands leave the settings of this machine's kernel alone.
  environmentVariables: { KEELSON_AGENT_SYSCTL_ROOT: '/nonexistent' },
};
