#!/usr/bin/env node
import { main } from '../create.ts';

process.exitCode = await main(process.argv.slice(2));
