import type { AddCommand } from './program.ts'

export const add: AddCommand = () => {}
