import { registerRuntimeConformance, type TestFunction } from '@keelson/conformance';
import test from 'ava';
import { lackingForPairs, newPair } from './support/pair.ts';
import { atPort, processServiceHarness } from './support/service-harness.ts';

/** Cases that depend on the port: streams, events, and aborted calls. */
const ofConnections = / (?:exec\.(?:streams|closing|many)|attach\.|pod\.port|observe\.|call\.|adopt\.streams)/;

/** All cases run at a socket at night, in service-conformance.test.ts. */
const someOf: TestFunction = Object.assign(
  (...[title, body]: Parameters<TestFunction>) => {
    if (ofConnections.test(title)) test(title, body);
  },
  { skip: () => {} },
);

if (lackingForPairs.length > 0) {
  test.skip(`the CRI service at a port with TLS [not run, there is no ${lackingForPairs.join(', ')}]`, () => {});
} else {
  const harness = await processServiceHarness('cri service of processes at a port with TLS', atPort(newPair()));
  test.after.always(() => harness[Symbol.asyncDispose]());
  registerRuntimeConformance(someOf, harness);
}
