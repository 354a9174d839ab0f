import { mkdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { registerRuntimeConformance } from '@keelson/conformance';
import { buildRoot, dockerArchive, tarOf } from '@keelson/test-support';
import test from 'ava';
import { openProcess, processHarness } from './support/process-harness.ts';

const reference = 'registry.test/app:1';
const folder = await mkdtemp('/tmp/keelson-images-');
mkdirSync(join(folder, 'root'));
mkdirSync(join(folder, 'sources'));
buildRoot(join(folder, 'root'));
tarOf(join(folder, 'root'), join(folder, 'layer.tar'));
dockerArchive(join(folder, 'scratch'), join(folder, 'sources', 'app.tar'), reference, [join(folder, 'layer.tar')]);

const options = { imageSources: [join(folder, 'sources')] };
const probe = await openProcess(options);
const { capabilities } = probe.engine.runtime;
await probe.dispose();

const pullable = capabilities.pull ? { pullableImage: reference } : {};
const harness = processHarness('process', capabilities, options, pullable);
test.after.always(async () => {
  await harness[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});
registerRuntimeConformance(test, harness);
