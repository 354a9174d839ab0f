import { registerRuntimeConformance } from '@keelson/conformance';
import { withDeadlines, withMetrics } from '@keelson/container-runtime';
import { noMetrics } from '@keelson/core/runtime';
import test from 'ava';
import { fakeHarness } from './support/fake-harness.ts';

registerRuntimeConformance(test, fakeHarness());
registerRuntimeConformance(
  test,
  fakeHarness('fake, decorated', (engine) =>
    withMetrics(withDeadlines(engine, { defaultTimeoutMs: 30_000 }), { metrics: noMetrics }),
  ),
);
