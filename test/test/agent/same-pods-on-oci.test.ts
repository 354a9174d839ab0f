import { join } from 'node:path';
import { installPrograms } from '@keelson/test-support';
import test from 'ava';
import { buildBusyboxImages } from '../../src/busybox-image.ts';
import { openOciEngine } from '../../src/real-engines.ts';
import { samePods } from '../../src/same-pods/same-pods.ts';

const lacking = process.getuid?.() === 0 ? installPrograms(['runc', 'busybox'], ['runc', 'busybox-static']) : ['root'];
const image = 'registry.test/busybox:1';

if (lacking.length > 0) {
  test.skip(`the same pods on an OCI binary [not run, there is no ${lacking.join(', ')}]`, () => {});
} else {
  samePods('oci', async (folder) => {
    const sources = join(folder, 'sources');
    buildBusyboxImages(join(folder, 'image'), sources, [{ reference: image }]);
    return { ...(await openOciEngine(folder, sources)), image };
  });
}
