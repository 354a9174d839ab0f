export default {
  files: ['{packages,adapters,examples}/*/dist/test/**/*.test.js', 'test/dist/**/*.test.js', 'benchmarks/dist/test/**/*.test.js'],
  timeout: '120s',
  verbose: false,
};
