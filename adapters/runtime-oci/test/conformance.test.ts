import { registerRuntimeConformance } from '@keelson/conformance';
import test from 'ava';
import { buildImages, missing } from './support/busybox-image.ts';
import { ociHarness, openOci } from './support/oci-harness.ts';

if (missing.length > 0) test.skip(`the runtime suite [not run, there is no ${missing.join(', ')}]`, () => {});
else {
  const images = buildImages();
  const options = { imageSources: [images.sources] };
  const probe = await openOci(options);
  const { capabilities } = probe.engine.runtime;
  await probe.dispose();
  const harness = ociHarness('oci', capabilities, options);
  test.after.always(async () => {
    await harness[Symbol.asyncDispose]();
    images.remove();
  });
  registerRuntimeConformance(test, harness);
}
