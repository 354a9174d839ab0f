import { registerStoreConformance } from '@keelson/conformance';
import test from 'ava';
import { postgresHarness } from './support/postgres-harness.ts';
import { serverFor } from './support/test-server.ts';

const at = serverFor(test);
if (at !== undefined) registerStoreConformance(test.serial, postgresHarness('postgres', at));
