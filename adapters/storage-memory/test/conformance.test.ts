import { registerStoreConformance } from '@keelson/conformance';
import test from 'ava';
import { memoryHarness } from './support/memory-harness.ts';

registerStoreConformance(test.serial, memoryHarness('memory'));
