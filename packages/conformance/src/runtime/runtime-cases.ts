import assert from 'node:assert/strict';
import { adoptionCases } from './cases/adoption-cases.ts';
import { containerCases } from './cases/container-cases.ts';
import { execCases } from './cases/exec-cases.ts';
import { imageCases } from './cases/image-cases.ts';
import { loadCases } from './cases/load-cases.ts';
import { logCases } from './cases/log-cases.ts';
import { observeCases } from './cases/observe-cases.ts';
import { processCases } from './cases/process-cases.ts';
import { sandboxCases } from './cases/sandbox-cases.ts';
import { stopCases } from './cases/stop-cases.ts';
import type { RuntimeCase } from './runtime-case.ts';

/** Every statement about runtimes; ids are stable and unique. */
export const runtimeCases: readonly RuntimeCase[] = [
  ...sandboxCases,
  ...containerCases,
  ...stopCases,
  ...processCases,
  ...logCases,
  ...execCases,
  ...imageCases,
  ...observeCases,
  ...adoptionCases,
  ...loadCases,
];

assert.equal(new Set(runtimeCases.map(({ id }) => id)).size, runtimeCases.length, 'case ids are unique');
