import { silentLogger, systemClock } from '@keelson/core/runtime';
import { createCniNetwork } from '../../src/index.ts';

// An agent that connects a sandbox with a plugin that never ends, until it is killed.
const { binDir, confDir, stateDir } = JSON.parse(process.argv[2] ?? '') as {
  binDir: string;
  confDir: string;
  stateDir: string;
};
setInterval(() => {}, 1_000);
const network = createCniNetwork({
  binDirs: [binDir],
  confDir,
  stateDirectory: stateDir,
  launch: ['sh'],
  clock: systemClock,
  logger: silentLogger,
});
await network.add({ sandboxId: 's1', namespace: 'web', name: 'front', netnsPath: `/proc/${process.ppid}/ns/net` });
