import { join } from 'node:path';
import { createProcessRuntime } from '@keelson/runtime-process';
import { samePods } from '../../src/same-pods/same-pods.ts';

if (process.platform === 'linux') {
  samePods('process', async (folder) => {
    const engine = await createProcessRuntime({ stateDirectory: join(folder, 'runtime'), nodeIp: '192.0.2.1' });
    return { engine, image: 'host', close: () => engine.runtime[Symbol.asyncDispose]() };
  });
}
