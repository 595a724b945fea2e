# The course as a folder that a lecturer gives away, and as OUT/checkpointing-course.tar.gz: lessons, exercises, library; no solutions, no
# number that is asked for (--answer computes it, and answers/ says why), no pages for lecturers. cmake -DROOT= -DOUT= -P handout.cmake
cmake_minimum_required(VERSION 3.21)
set(lessons ${ROOT}/examples/lessons)
set(course ${OUT}/checkpointing-course)
file(REMOVE_RECURSE ${course})
file(COPY ${lessons}/handout/ DESTINATION ${course})
file(COPY ${ROOT}/dist/gcp.h ${ROOT}/dist/gcp.c ${ROOT}/LICENSE ${ROOT}/hostcuda DESTINATION ${course})
file(GLOB sources ${lessons}/[0-9]*.c ${lessons}/[0-9]*.cpp ${lessons}/*.h)
file(COPY ${sources} ${lessons}/CMakeLists.txt ${lessons}/exercises ${lessons}/answers DESTINATION ${course}/lessons)
execute_process(COMMAND ${CMAKE_COMMAND} -E tar czf checkpointing-course.tar.gz checkpointing-course WORKING_DIRECTORY ${OUT} COMMAND_ERROR_IS_FATAL ANY)
message("${course}\n${course}.tar.gz")
