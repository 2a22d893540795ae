# frozen_string_literal: true
# SPDX-License-Identifier: MIT

Gem::Specification.new do |spec|
  spec.name = "tickwheel-sidekiq"
  spec.version = "1.0.0"
  spec.summary = "Scheduled jobs and retries of Sidekiq, parked in Tickwheel's Redis module"
  spec.description = "perform_in, perform_at and retries are filed with TW.SEND, and the server pushes each job to " \
                     "its queue when it is due. No process polls."
  spec.authors = ["The Tickwheel authors"]
  spec.license = "MIT"
  spec.files = ["README.md", "lib/tickwheel/sidekiq.rb"]
  spec.required_ruby_version = ">= 2.7"
  spec.add_dependency "sidekiq", ">= 6.4", "< 6.5"
end
