import { registerRuntimeConformance, type TestFunction } from '@keelson/conformance';
import test from 'ava';
import { fakeServiceHarness, processServiceHarness } from './support/service-harness.ts';

/** The images of the fake are on a file system that no host has, and the client reads the size from the host. */
const withoutFilesystem: TestFunction = Object.assign(
  (...[title, body]: Parameters<TestFunction>) => {
    if (title.includes('image.file-system')) test.skip(`${title} [not run, the fake has no files]`, body);
    else test(title, body);
  },
  { skip: test.skip },
);

// What connections to real processes change is tested by service-conformance-tls.test.ts.
const isFull = process.env['KEELSON_TEST_FULL'] === '1';
const [fake, processes] = await Promise.all([fakeServiceHarness(), isFull ? processServiceHarness() : undefined]);
registerRuntimeConformance(withoutFilesystem, fake);
if (processes !== undefined) {
  test.after.always(() => processes[Symbol.asyncDispose]());
  registerRuntimeConformance(test, processes);
}
