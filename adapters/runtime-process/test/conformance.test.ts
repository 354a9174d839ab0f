import { registerRuntimeConformance } from '@keelson/conformance';
import test from 'ava';
import { openProcess, processHarness } from './support/process-harness.ts';

const probe = await openProcess();
const { capabilities } = probe.engine.runtime;
await probe.dispose();

registerRuntimeConformance(test, processHarness('process', capabilities));
