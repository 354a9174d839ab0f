import { ConfigMap } from '@keelson/kinds';
import { startTestPlane } from '@keelson/testing';

/** Prints how many milliseconds a test plane takes from call to first answer; imports are not counted. */
const at = performance.now();
const plane = await startTestPlane();
await plane.client(ConfigMap).namespace('default').list();
process.stdout.write(`${performance.now() - at}\n`);
await plane.close();
