# What an installation has beside libraries, headers and the program: documents, examples, the records of `trellis
# validate`, and what the program says of itself: manual pages and completion.
set(data ${CMAKE_INSTALL_DATADIR}/trellis)
install(FILES README.md CHANGELOG.md SECURITY.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY examples DESTINATION ${data} PATTERN "*.pyc" EXCLUDE
        PATTERN __pycache__ EXCLUDE)
install(FILES sim/published/measured.json DESTINATION ${data}/published)

if(TARGET trellis)
  set(TRELLIS_SELF ${PROJECT_BINARY_DIR}/self_description)
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/self_description.cmake CONTENT
"# Run by an installation before the files that this makes are copied.
# An installation that runs at the same time waits until this one has copied them.
file(LOCK ${TRELLIS_SELF}.lock GUARD PROCESS TIMEOUT 600 RESULT_VARIABLE ignored)
file(REMOVE_RECURSE ${TRELLIS_SELF})
file(MAKE_DIRECTORY ${TRELLIS_SELF})
execute_process(COMMAND $<TARGET_FILE:trellis> manual ${TRELLIS_SELF}/man1 OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
foreach(shell bash zsh fish)
  execute_process(COMMAND $<TARGET_FILE:trellis> completion \${shell} OUTPUT_FILE ${TRELLIS_SELF}/\${shell}
                  COMMAND_ERROR_IS_FATAL ANY)
endforeach()
")
  install(SCRIPT ${PROJECT_BINARY_DIR}/self_description.cmake)
  install(DIRECTORY ${TRELLIS_SELF}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
  install(FILES ${TRELLIS_SELF}/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME trellis)
  install(FILES ${TRELLIS_SELF}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _trellis)
  install(FILES ${TRELLIS_SELF}/fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
          RENAME trellis.fish)
endif()
