import { writeSync } from 'node:fs';
import { systemClock } from '@keelson/core/runtime';
import { ImageStore } from '../../src/index.ts';

/**
 * A process that pulls an image, to be killed: writes a dot for every progress, a line when it is done, and stays.
 * Arguments: folder, reference.
 */
const [, , folder = '', reference = ''] = process.argv;
const store = new ImageStore({ folder, clock: systemClock, registries: {} });
await store.load();
await store.pullImage(reference, { onProgress: () => writeSync(1, '.') });
writeSync(1, '\n');
setInterval(() => {}, 1000);
